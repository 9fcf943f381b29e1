"""One spelling for letters that people write in several ways.

* NFKC and case folding; accents and the vowel points of Arabic and Hebrew are dropped.
* Latin letters that no accent explains become the letter they are a form of (`ł` l, `ø` o, `ħ` h, `ı` i, `æ` ae, `œ` oe,
  `þ` th, `ð` d), as Lucene's ASCII folding has them. The letter is read from the character's name in Unicode.
* Arabic and Persian forms of one letter meet: alef, yeh, kaf, heh. Digits of all scripts are 0 to 9.
* Hyphens and apostrophes of all kinds are `-` and `'`; the maqaf of Hebrew is a hyphen.
* An emoji is a word; what only varies it (skin tone, variation selector, joiner) is dropped.
* Other format characters (soft hyphens, direction marks) are no part of a word. What remains is a space.
"""

import re
import unicodedata
from functools import lru_cache

JOINERS = "_./:@'+#&-"  # "-" last: inside a character class it is then itself

_SAME = str.maketrans(dict.fromkeys("‘’‛ʹʻʼʽˈ′ꞌ׳", "'") | dict.fromkeys("‐‑־֊᐀᠆⁃゠", "-"))
_SPACED_ACUTE = re.compile(r"(?<=\w) \u0301(?=\w)")
"""What NFKC makes of the acute accent that stands for an apostrophe."""
_MARKED = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670\u20e3\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_LETTERS = {
    "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ŋ": "n", "ĸ": "q", "ɛ": "e", "ɔ": "o", "ə": "a", "ı": "i",
    "ٱ": "ا", "ى": "ي", "ی": "ي", "ے": "ي", "ک": "ك", "ة": "ه", "ہ": "ه", "ە": "ه",
}  # fmt: skip
_FORM_OF = re.compile(r"LATIN SMALL LETTER (?:DOTLESS )?([A-Z]) WITH ")
_EMOJI = re.compile("[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff]")
_SKIN = range(0x1F3FB, 0x1F400)
_SPELLED = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_SPELT = re.compile(f"[{''.join(_SPELLED)}]")


def unified(text: str) -> str:
    """In one case and width, composed, with one kind of hyphens and apostrophes."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _SPACED_ACUTE.sub("'", unicodedata.normalize("NFC", folded).translate(_SAME))


def plain(text: str) -> str:
    """A unified text with plain letters; a space for what is neither a letter nor between two."""
    return text if text.isascii() else "".join(map(_plain_character, text))


def spelt_out(text: str) -> str | None:
    """A unified text as it is written where there are no such letters: `ue` for ü, `oe` for ø. None when it has none."""
    return plain(_SPELT.sub(lambda found: _SPELLED[found[0]], text)) if _SPELT.search(text) else None


@lru_cache(maxsize=65_536)
def _plain_character(character: str) -> str:
    category = unicodedata.category(character)
    if (category == "Cf" and character != "\u200b") or ord(character) in _SKIN:
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category in ("So", "Cn") and _EMOJI.match(character):
        # Cn: an emoji younger than this interpreter's tables is the same word under all of them.
        return f" {character} "
    if not (character in JOINERS or character.isalnum() or category[0] == "M" or _is_flag(character)):
        return " "
    spread = _MARKED.sub("", unicodedata.normalize("NFD", character))
    return unicodedata.normalize("NFC", "".join(map(_letter, spread)))


def _letter(character: str) -> str:
    known = _LETTERS.get(character)
    if known is not None or character.isascii():
        return known or character
    form = _FORM_OF.match(unicodedata.name(character, ""))
    return form[1].lower() if form else character


def _is_flag(character: str) -> bool:
    """Half of one: a regional indicator."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"
