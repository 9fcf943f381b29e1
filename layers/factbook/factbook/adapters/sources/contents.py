"""What a source answered, as the content of a fact: JSON as it is, other text as a string, judged as a write is."""

import codecs
import hashlib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from factbook.adapters.sources.bodies import MAX_BYTES, TOO_LARGE
from factbook.canonical import content_canonical
from factbook.domain.errors import BadInput
from factbook.domain.facts.fact import Freshness
from factbook.domain.sources.pointers import NothingThere, value_at
from factbook.domain.strict_json import NoJson, check_depth, dump_json, parse_json
from factbook.ports.sources.handlers import AnswerRefused, Ask, Fetched, SourceUnavailable, Unchanged

MAX_VALIDATOR = 1024
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')
_JSON = re.compile(r"application/(?:[\w.-]+\+)?json|text/json", re.ASCII)
_TEXT = re.compile(r"text/(?!event-stream)[\w.+-]+|application/(?:[\w.-]+\+)?(?:xml|yaml)", re.ASCII)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.ASCII | re.IGNORECASE)
_CHARSETS = frozenset({"utf-8", "ascii", "iso8859-1", "iso8859-15", "cp1252", "utf-16"})


@dataclass(frozen=True)
class Validators:
    """What the source says of its answer: how to ask whether it still holds, and for how long it need not be asked.

    A fact has room for 1,024 characters of each; without a longer one the source is asked for everything.
    """

    etag: str | None = None
    source_version: str | None = None
    max_age_seconds: int | None = None

    def unchanged(self) -> Unchanged:
        return Unchanged(_kept(self.etag), _kept(self.source_version), self.max_age_seconds)

    def fetched(self, text: str) -> Fetched:
        return Fetched(text, _kept(self.etag), _kept(self.source_version), self.max_age_seconds)


def sendable_etag(known: Freshness) -> str | None:
    """The entity tag, unless it is none: whoever wrote the fact may have made it up."""
    return known.etag if known.etag and _ETAG.fullmatch(known.etag) else None


def media_type(content_type: str) -> str:
    """Raises AnswerRefused for a type that becomes no content."""
    media = content_type.partition(";")[0].strip().lower()
    if not _JSON.fullmatch(media) and not _TEXT.fullmatch(media):
        raise AnswerRefused("the answer is neither JSON nor text")
    return media


def read_value(body: bytes, content_type: str) -> Any:
    """A JSON value, or text as a string. Raises SourceUnavailable for what is broken, AnswerRefused for what is no content."""
    if _JSON.fullmatch(media_type(content_type)):
        return read_json(body)
    charset = _CHARSET.search(content_type)
    try:
        name = codecs.lookup(charset[1] if charset else "utf-8").name
        if name not in _CHARSETS:
            raise LookupError
        return body.decode("utf-8-sig" if name == "utf-8" else name)
    except LookupError:
        raise AnswerRefused("the answer is text in a charset that is not read") from None
    except UnicodeDecodeError:
        raise SourceUnavailable("the answer is not text in the charset it names") from None


def read_json(text: bytes | str) -> Any:
    """Raises SourceUnavailable for what is no JSON, AnswerRefused for JSON that no write may have either."""
    try:
        return parse_json(text)
    except NoJson:
        raise SourceUnavailable("the answer is no JSON") from None
    except BadInput as error:
        raise _not_taken(error) from None


def answer(ask: Ask, value: Any, fragment: str, validators: Validators) -> Fetched | Unchanged:
    """The part that the fragment points at, if it is a pointer; Unchanged when the fact has just that content."""
    if fragment.startswith("/"):
        try:
            value = value_at(value, unquote(fragment))
        except NothingThere:
            raise AnswerRefused("the answer has nothing at the place that the address points to") from None
    try:
        check_depth(value)
    except BadInput as error:
        raise _not_taken(error) from None
    if ask.known_hash == "sha256:" + hashlib.sha256(content_canonical(value)).hexdigest():
        return validators.unchanged()
    text = dump_json(value)
    if len(text.encode()) > MAX_BYTES:
        raise AnswerRefused(TOO_LARGE)
    return validators.fetched(text)


def _not_taken(error: BadInput) -> AnswerRefused:
    return AnswerRefused(f"the answer is JSON that is not taken: {error.message}")


def _kept(validator: str | None) -> str | None:
    return validator if validator and len(validator) <= MAX_VALIDATOR else None
