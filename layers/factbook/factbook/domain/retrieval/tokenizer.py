"""Words of a text as both search indexes see them.

A token is made of letters, digits, marks, emoji and `_` only, at most 64 characters: separated by spaces it is safe in
any index, and no caller's word can become query syntax. Two tokens that are equal here are equal in every index.

* Letters have one spelling (`letters`). A word with ä, ö, ü, å or ø is found as `ae`, `oe`, `ue`, `aa`, `oe` as well.
* Words joined by one of `-_./:@'+#&` are kept in parts and whole, the joiners made `_`: `ERR-7Q41-ZX` gives
  `err_7q41_zx`, `err`, `7q41`, `zx`. Two or three words joined by hyphens are one word too: `e-mail` gives `email`.
* ASCII words are stemmed; words with digits and wholes are not.
* Scripts written without spaces (Chinese, Japanese, Thai …) and Korean give characters and overlapping pairs; a query
  uses the pairs, or the character when it stands alone.
* Stop words are indexed, and left out of a query that has any other word.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from factbook.domain.retrieval.letters import JOINERS, plain, spelt_out, unified

MAX_TOKEN = 64
MAX_QUERY_TERMS = 256
MAX_QUERY_CHARACTERS = 100_000
MAX_QUERY_WORDS = 20_000
"""Looked at in a query: one character can stand for eighteen, and so for several words."""
PIECE = 65_536
"""Texts are normalised in pieces: NFKC can grow a character 18-fold."""

_LETTERS = r"(?:[^\W_]|[^\x00-\x7f\s])+"  # the pattern takes every character beyond ASCII; `plain` removes the others
_CANDIDATE = re.compile(rf"{_LETTERS}(?:[{JOINERS}]{_LETTERS})*")
_PARTS = re.compile(rf"[{JOINERS}]")
MOST_JOINED = 3
_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\ua960-\ua97f\uac00-\ud7ff"  # kana, Hangul
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\U0001f1e6-\U0001f1ff"  # halves of flags
)
_RUNS = re.compile(rf"[{_PAIRED}]+|[^{_PAIRED}]+")
_IS_PAIRED = re.compile(rf"[{_PAIRED}]")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """`stem` maps a lower-case ASCII word to its stem; `stop_words` are common words in plain spelling (`don't`)."""

    stem: Callable[[str], str]
    stop_words: frozenset[str]

    def document(self, text: str) -> Iterator[str]:
        """Every token of a text, in order, repeats included."""
        for word in _words(text):
            for run in _RUNS.findall(word):
                if _IS_PAIRED.match(run):
                    yield from run
                    yield from _pairs(run)
                else:
                    yield from self._forms(run)

    def query(self, text: str, limit: int = MAX_QUERY_TERMS) -> tuple[str, ...]:
        """Distinct terms to look for, at most `limit`; words with digits in them survive a cut first. Empty when the text has no word.

        Of a longer text than anybody asks, the beginning is looked at.
        """
        wanted: dict[str, None] = {}
        common: dict[str, None] = {}
        for word in islice(_words(text[:MAX_QUERY_CHARACTERS]), MAX_QUERY_WORDS):
            for run in _RUNS.findall(word):
                if _IS_PAIRED.match(run):
                    wanted.update(dict.fromkeys(_pairs(run) if len(run) > 1 else run))
                else:
                    stops = run in self.stop_words
                    told = () if stops else tuple(self._forms(run, without=self.stop_words))
                    # A run whose every part is a stop word ("a:\x80") is one too.
                    (wanted if told else common).update(dict.fromkeys(told or self._forms(run)))
        return _bounded(list(wanted or common), limit)

    def _forms(self, word: str, without: frozenset[str] = frozenset()) -> Iterator[str]:
        """The parts of a word, some left out, and the whole when there are several."""
        parts = [part for part in _PARTS.split(word) if part]
        if len(parts) == 2 and parts[1] == "s" and "'" in word:
            parts.pop()
        elif len(parts) > 1:
            yield _short("_".join(parts))
            if len(parts) <= MOST_JOINED and word == "-".join(parts) and all(map(str.isalpha, parts)):
                yield self._stemmed("".join(parts))
        for part in parts:
            if part not in without:
                yield self._stemmed(part)

    def _stemmed(self, part: str) -> str:
        return _short(self.stem(part) if part.isascii() and part.isalpha() else part)


def text_of(value: object) -> str:
    """The words of a JSON value, keys included, one per line in the order written."""
    return "\n".join(_strings(value))


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case dict():
            for key, inner in value.items():
                yield str(key)
                yield from _strings(inner)
        case list() | tuple():
            for inner in value:
                yield from _strings(inner)


def _words(text: str) -> Iterator[str]:
    for piece in _pieces(text):
        for candidate in _CANDIDATE.findall(unified(piece)):
            if candidate.isascii():
                yield candidate
                continue
            yield from plain(candidate).split()
            spelt = spelt_out(candidate)
            if spelt is not None:
                yield from spelt.split()


def _pieces(text: str) -> Iterable[str]:
    """The text in pieces cut after white space where there is any, so that no word is cut."""
    start = 0
    while len(text) - start > PIECE:
        window = text[start : start + PIECE]
        cut = next((at for at in range(len(window) - 1, 0, -1) if window[at].isspace()), len(window) - 1) + 1
        yield window[:cut]
        start += cut
    yield text[start:]


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def _short(token: str) -> str:
    """A long token keeps its beginning and a digest of the whole, so that only equal ones meet."""
    if len(token) <= MAX_TOKEN:
        return token
    return f"{token[: MAX_TOKEN - 17]}_{hashlib.sha256(token.encode()).hexdigest()[:16]}"


def _bounded(terms: list[str], limit: int) -> tuple[str, ...]:
    if len(terms) <= limit:
        return tuple(terms)
    kept = set(sorted(terms, key=lambda term: not any(map(str.isdigit, term)))[:limit])
    return tuple(term for term in terms if term in kept)
