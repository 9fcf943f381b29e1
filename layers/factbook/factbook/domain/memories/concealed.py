"""What a text hides from the person who reads it: characters that cannot be seen, and text in an encoding."""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator

from factbook.domain.memories.readings import INVISIBLE

_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
# Where characters that cannot be seen have a use: they are taken out, and any that is left hides something.
_USED = re.compile(
    "(?<=[\u0600-\u06ff\u0700-\u074f\u0900-\u109f\u1780-\u17ff])[\u200c\u200d]"  # joiners of Arabic and Indic scripts
    "|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b"  # where a line may break in Thai and Khmer
    "|(?<=[\u00a9\u00ae\u203c-\u3299\ufe0f\U0001f000-\U0001faff])[\ufe0e\ufe0f\u200d]"  # one picture of several
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # keycaps
    "|(?<=[\u3400-\u9fff\U00020000-\U0003ffff])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"  # another shape of one Han character
    "|(?<=\U0001f3f4)[\U000e0061-\U000e007a]{4,6}\U000e007f"  # flags of regions
    "|(?<=[^\\W_])\u00ad(?=[^\\W_])"  # soft hyphens
)
_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"  # letters that are written from right to left
_RIGHT_TO_LEFT = re.compile(f"[{_RTL}]")
_DIRECTION = re.compile(
    "[\u061c\u200e\u200f]"  # marks, anywhere in a text that has such letters
    f"|(?<=[{_RTL}])[\u202a-\u202c\u2066-\u2069]|(?<=[{_RTL}][ .,:])[\u202a-\u202c\u2066-\u2069]"  # after such a letter
    f"|[\u202a-\u202c\u2066-\u2069](?=[ .,:]?[{_RTL}])"  # before one
)

_ESCAPED_RUN = re.compile(
    r"(?:%[2-7][0-9A-Fa-f]){8}|(?:\\u00[2-7][0-9A-Fa-f]){8}|(?:\\x[2-7][0-9A-Fa-f]){8}"
    r"|(?:&#x[2-7][0-9A-Fa-f];){8}|(?:&#[0-9]{2,3};){8}|(?:\\u\{[2-7][0-9A-Fa-f]\}){8}"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}")
_HEX = re.compile(r"[0-9A-Fa-f]{12,}|(?<!\w)(?:[0-9A-Fa-f]{2}[ :]){5,}[0-9A-Fa-f]{2}(?!\w)")
_BITS = re.compile(r"[01]{48,}|(?<!\w)(?:[01]{8} ){5,}[01]{8}(?!\w)")
_SEPARATORS = re.compile("[ :]")
LONG = 14
"""From so many characters on, any text in an encoding waits; a shorter one only if it reads like an instruction."""


def has_hidden_characters(text: str) -> bool:
    """Whether there are characters that show nothing, change the direction of what is around them, or have no agreed shape.

    Where they belong to the way a language or a picture is written, they are not hidden.
    """
    if text.isascii() or not (INVISIBLE.search(text) or _PRIVATE.search(text)):
        return bool(_CONTROL.search(text))
    rest = _USED.sub("", text)
    if _RIGHT_TO_LEFT.search(rest):
        rest = _DIRECTION.sub("", rest)
    return any(pattern.search(rest) for pattern in (INVISIBLE, _PRIVATE, _CONTROL))


def has_escaped_letters(text: str) -> bool:
    """Whether letters that need no escape stand escaped in a row."""
    return bool(_ESCAPED_RUN.search(text))


def decoded_texts(text: str) -> Iterator[str]:
    """What runs in base64, base32, hexadecimal or binary digits say, where that is text."""
    for pattern, decode in _ENCODINGS:
        for match in pattern.finditer(text):
            try:
                said = decode(match[0]).decode("utf-8")
            except (ValueError, binascii.Error):
                continue
            if _is_text(said):
                yield said


def _is_text(said: str) -> bool:
    """Mostly letters, and nothing that is not printed."""
    letters = sum(character.isalpha() or character == " " for character in said)
    printed = all(character.isprintable() or character in "\n\t" for character in said)
    return printed and len(said) >= 6 and letters >= 0.8 * len(said) and _one_alphabet(said)


def _one_alphabet(said: str) -> bool:
    """Bytes that happen to be UTF-8 give letters of many scripts; a text has one, or two."""
    return (
        len({unicodedata.name(character, "?").split()[0] for character in said if character.isalpha()}) <= 2
    )


def _from_base64(run: str) -> bytes:
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(run[: len(run) // 4 * 4] + _padded(run[len(run) // 4 * 4 :]))


def _padded(rest: str) -> str:
    return rest.ljust(4, "=") if len(rest) > 1 else ""


def _from_base32(run: str) -> bytes:
    run = run.rstrip("=")
    return base64.b32decode(run[: len(run) // 8 * 8])


def _from_hex(run: str) -> bytes:
    return bytes.fromhex(_SEPARATORS.sub("", run))


def _from_bits(run: str) -> bytes:
    digits = _SEPARATORS.sub("", run)
    return bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) - 7, 8))


_ENCODINGS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_BASE64, _from_base64),
    (_BASE32, _from_base32),
    (_HEX, _from_hex),
    (_BITS, _from_bits),
)
