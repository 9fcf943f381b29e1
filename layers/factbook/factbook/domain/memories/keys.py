"""Keys that look alike, so that an agent corrects a memory instead of adding one beside it."""

import re
import unicodedata
from collections.abc import Iterable

_WORDS = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_ENDING = 4
"""Letters in which two forms of a word may differ at their ends: region and regional, prefer and preference."""


def similar_keys(key: str, others: Iterable[str]) -> list[str]:
    """Those of `others` with the words of `key` in another order or form, by name."""
    own = words_of(key)
    return sorted({other for other in others if other != key and _alike(own, words_of(other))})


def words_of(key: str) -> list[str]:
    """A key's words without case and accents: `reportingRegion`, `Reporting_region` and `reporting-region` have the same."""
    plain = unicodedata.normalize("NFKD", _CAMEL.sub(" ", key))
    plain = "".join(each for each in plain if not unicodedata.combining(each))
    return _WORDS.findall(plain.casefold())


def _alike(one: list[str], other: list[str]) -> bool:
    if "".join(sorted(one)) == "".join(sorted(other)) or "".join(one) == "".join(other):
        return bool(one)
    left = list(other)
    for word in one:
        match = next((each for each in left if _same_word(word, each)), None)
        if match is None:
            return False
        left.remove(match)
    return not left and bool(one)


def _same_word(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (one.isalpha() and other.isalpha()):
        return False  # numbers and codes have no forms: each is another thing
    shared = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    shorter, longer = sorted((len(one), len(other)))
    ending = longer - shared
    return shared >= 4 and ending <= _LONGEST_ENDING and (shared == shorter or ending < shared)
