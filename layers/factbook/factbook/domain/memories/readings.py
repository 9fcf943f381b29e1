"""The forms in which a text is read: as a person sees it, and as it is once its disguises are off.

`fold` is the form in which words are compared: width, case and accents do not count, what cannot be seen is left out, and
letters that only look Latin are Latin. `readings` adds what a text may also say: percent, Unicode and HTML escapes
resolved, s p a c e d letters joined, punctuation inside words taken out, and digits read as letters. Each step is made
once, so a text has at most `MAX_READINGS` readings, none much longer than itself.
"""

import re
import unicodedata
from collections.abc import Iterator

MAX_READINGS = 5

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that take no room or show nothing."""

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u093c\u0489]")
"""Combining accents, vowel points of Hebrew and Arabic, the dot of borrowed sounds in Hindi."""

_PLAIN = str.maketrans(
    {
        **dict(zip("ıłøđħŧʼ’‘´`ʹ", "ilodht''''''", strict=True)),
        **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢɡɑɩ", "abcdefghijklmnoprstuvwyzgai", strict=True)),
        **{chr(first + n): chr(97 + n) for first in (0x1F150, 0x1F170) for n in range(26)},  # letters in black boxes
        "æ": "ae", "œ": "oe", "ß": "ss", "أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ँ": "ं",
    }
)  # fmt: skip
_LATIN_LOOK = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХаеіїјкморсѕухһԁԛԝѵвгнптиьΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεηικνορτυχϲϳγωօսհոցᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳ",
        "ABESIJKMHOPCTYXaeiijkmopcsyxhdqwvbrhntubABEZHIKMNOPTYXabenikvoptuxcjywouhngABCDEGHiJKLMPRSTVW",
        strict=True,
    )
)
_TO_LATIN = str.maketrans(_LATIN_LOOK)
_TO_CYRILLIC = str.maketrans("ABEKMHOPCTYXaeopcyxkm", "АВЕКМНОРСТУХаеорсухкм")
_LATIN = re.compile("[A-Za-z]")
_OTHER_SCRIPT = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13f5]")
_WORD = re.compile(r"[^\W\d_]+")

_ESCAPES = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)|\\u\{?(?P<unicode>[0-9A-Fa-f]{4,6})\}?|\\x(?P<byte>[0-9A-Fa-f]{2})"
    r"|&#x(?P<hex>[0-9A-Fa-f]{2,6});?|&#(?P<decimal>[0-9]{2,7});?|&(?P<named>lt|gt|amp|quot|nbsp|apos);"
)
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "nbsp": " ", "apos": "'"}
_INSIDE = re.compile(r"(?<=\w)[.\-*~|·•^`'+=\\\u00ad]{1,2}(?=\w)")
_SPACED = re.compile(
    r"(?<!\w)[a-z\u00df-\u024f\u0370-\u052f](?:[ \t\n][a-z\u00df-\u024f\u0370-\u052f]){2,}(?!\w)"
)
_LEET_WORD = re.compile(r"[\w@$€!|]+")
_LEET_SIGN = re.compile(r"[0134578@$€]|[!|](?=\w)")
_LEET = str.maketrans("03458@$€7|!", "oeasbaseTli".lower())


def fold(text: str) -> str:
    """The form in which words are compared. Folding twice changes nothing more."""
    if not text.isascii():
        text = INVISIBLE.sub("", unicodedata.normalize("NFKC", INVISIBLE.sub("", text)))
        text = _without_look_alikes(text)
        text = _MARKS.sub("", unicodedata.normalize("NFD", text.casefold().translate(_PLAIN)))
        text = unicodedata.normalize("NFC", text).translate(_PLAIN)
    return text.lower().replace("_", " ")


def readings(text: str) -> Iterator[str]:
    """The folded forms of a text, the plainest first, none twice."""
    seen: set[str] = set()
    for form in _forms(text):
        if form not in seen:
            seen.add(form)
            yield form


def unescaped(text: str) -> str:
    """The text with percent, Unicode and HTML escapes resolved, twice if the first time brought out more."""
    for _ in range(2):
        if "%" not in text and "\\" not in text and "&" not in text:
            break
        text = _ESCAPES.sub(_resolved, text)
    return text


def _forms(text: str) -> Iterator[str]:
    yield fold(text)
    clear = fold(unescaped(text))
    yield clear
    joined = _SPACED.sub(lambda run: re.sub(r"\s", "", run[0]), _INSIDE.sub("", _read_as_latin(clear)))
    yield joined
    for one in "il":
        yield _LEET_WORD.sub(lambda word, one=one: _spelled(word[0], one), joined)  # type: ignore[misc]


def _spelled(word: str, one: str) -> str:
    if not _LEET_SIGN.search(word) or not any(map(str.isalpha, word)):
        return word
    return word.replace("1", one).translate(_LEET)


def _without_look_alikes(text: str) -> str:
    """The text with each word of two scripts in one: in Latin when all its letters look Latin, else in Cyrillic."""
    if not _OTHER_SCRIPT.search(text):
        return text
    return _WORD.sub(lambda word: _one_script(word[0]), text)


def _one_script(word: str) -> str:
    if not _OTHER_SCRIPT.search(word) or not _LATIN.search(word):
        return word
    latin = word.translate(_TO_LATIN)
    return word.translate(_TO_CYRILLIC) if _OTHER_SCRIPT.search(latin) else latin


def _read_as_latin(text: str) -> str:
    """The text with each word that is all look-alikes in Latin: "асе" may be a word of its script, so this is a second reading."""
    if not _OTHER_SCRIPT.search(text):
        return text
    return _WORD.sub(lambda word: _latin_if_all_looks_so(word[0]), text)


def _latin_if_all_looks_so(word: str) -> str:
    latin = word.translate(_TO_LATIN)
    return word if _OTHER_SCRIPT.search(latin) else latin


def _resolved(match: re.Match[str]) -> str:
    found = match[0]
    if match["percent"]:
        return bytes.fromhex(found.replace("%", "")).decode("utf-8", "replace")
    if match["named"]:
        return _NAMED[match["named"]]
    number = match["decimal"]
    code = int(number) if number else int(match["unicode"] or match["byte"] or match["hex"], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else found
