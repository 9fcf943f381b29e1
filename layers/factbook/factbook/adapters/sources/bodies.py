"""Bodies of answers, unpacked piece by piece: none becomes larger than what a fact may hold."""

import zlib
from collections.abc import Iterator, Mapping

from factbook.ports.sources.handlers import AnswerRefused, SourceUnavailable

MAX_BYTES = 4 * 1024 * 1024
TOO_LARGE = "the answer is larger than 4 MB"
_GZIP = 16 + zlib.MAX_WBITS
_PIECE = 1 << 16


def unpacked(pieces: Iterator[bytes], headers: Mapping[str, str], most: int = MAX_BYTES) -> Iterator[bytes]:
    """The pieces as they were before they were packed; packed and unpacked they have `most` bytes.

    `headers`: `content-length` and `content-encoding`. Raises AnswerRefused for what is larger or packed otherwise than by
    gzip, SourceUnavailable for gzip that is cut or broken.
    """
    promised = headers.get("content-length", "")
    if promised.isdecimal() and int(promised[:20]) > most:
        raise AnswerRefused(TOO_LARGE)
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("gzip", "x-gzip"):
        pieces = _gunzipped(_bounded(pieces, most))
    elif coding not in ("", "identity"):
        raise AnswerRefused("the answer is packed in a way that was not asked for")
    return _bounded(pieces, most)


def _bounded(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            raise AnswerRefused(TOO_LARGE)
        yield piece


def _gunzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """In small pieces, so that a bomb is noticed by its first ones."""
    unzip = zlib.decompressobj(_GZIP)
    try:
        for packed in pieces:
            while packed and not unzip.eof:
                yield unzip.decompress(packed, _PIECE)
                packed = unzip.unconsumed_tail
            if unzip.unused_data or (packed and unzip.eof):
                raise zlib.error
        if not unzip.eof:
            raise zlib.error
    except zlib.error:
        raise SourceUnavailable("the answer's gzip is broken") from None
