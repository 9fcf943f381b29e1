"""What every handler of a source keeps, whatever it asks."""

import hashlib
from abc import ABC, abstractmethod
from typing import Any

import pytest

from factbook.canonical import content_canonical
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.domain.strict_json import dump_json
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import (
    Answer,
    Ask,
    Fetched,
    Handler,
    SourceRefused,
    SourceUnavailable,
    Unchanged,
)

VALUE = {"price": 12.50, "stock": 7, "name": "é", "tags": ["a", "b/c"], "b/c": {"~": None}}
SECRET = "s3cret"


def hash_of(value: Any) -> str:
    return "sha256:" + hashlib.sha256(content_canonical(value)).hexdigest()


class HandlerContract(ABC):
    """Subclasses give `handler`, make the source answer, and say by which URI it is asked."""

    handler: Handler
    kind: str

    @abstractmethod
    def answers(self, text: str) -> str:
        """From now on the source's value is this JSON text. Its URI."""

    @abstractmethod
    def has_nothing(self) -> str:
        """The URI of something that is not there."""

    @abstractmethod
    def fails(self) -> str:
        """From now on the source answers that it cannot. Its URI."""

    def source(self, uri: str | None, **freshness: Any) -> Source:
        return Source.model_validate(
            {
                "kind": self.kind,
                "uri": uri,
                "freshness": Freshness(**freshness),
                "refresh": Refresh(strategy="manual"),
            }
        )

    def ask(
        self,
        uri: str | None,
        known: Any = ...,
        deadline: Deadline | None = None,
        tenant: str = "acme",
        **freshness: Any,
    ) -> Answer:
        known_hash = None if known is ... else hash_of(known)
        ask = Ask(tenant, "f1", self.source(uri, **freshness), known_hash)
        return self.handler.ask(ask, deadline or Deadline(30))

    @pytest.mark.parametrize(
        "value",
        [VALUE, [], {}, "text", "", 0, -1.5, 10**30, True, None, [[1], {"a": "\u2028"}]],
        ids=ascii,
    )
    def test_a_json_value_becomes_the_content(self, value: Any) -> None:
        found = self.ask(self.answers(dump_json(value)))
        assert isinstance(found, Fetched)
        assert found.content_text == dump_json(value)

    def test_the_content_that_is_known_already_is_no_change_however_it_is_written(self) -> None:
        spaced = '{"b/c": {"~": null}, "tags": ["a", "b/c"], "name": "\\u00e9", "stock": 7, "price": 12.5}'
        assert isinstance(self.ask(self.answers(spaced), VALUE), Unchanged)
        assert isinstance(self.ask(self.answers(spaced), {**VALUE, "stock": 8}), Fetched)
        assert isinstance(self.ask(self.answers('{"b/c": 7}'), VALUE), Fetched)

    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            ("#/stock", 7),
            ("#/tags/1", "b/c"),
            ("#/b~1c", {"~": None}),
            ("#/b~1c/~0", None),
            ("#", VALUE),
            ("#other", VALUE),
        ],
    )
    def test_a_fragment_that_begins_with_a_slash_points_into_the_value(
        self, pointer: str, value: Any
    ) -> None:
        found = self.ask(self.answers(dump_json(VALUE)) + pointer)
        assert isinstance(found, Fetched)
        assert found.content_text == dump_json(value)
        assert isinstance(self.ask(self.answers(dump_json(VALUE)) + pointer, value), Unchanged)

    @pytest.mark.parametrize(
        "pointer", ["#/", "#/nothing", "#/tags/2", "#/tags/-", "#/tags/01", "#/name/0", "#/~2"]
    )
    def test_a_place_that_is_not_there_is_refused(self, pointer: str) -> None:
        with pytest.raises(SourceRefused, match="nothing at the place"):
            self.ask(self.answers(dump_json(VALUE)) + pointer)

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": 1, "a": 2}',
            "[NaN]",
            "[1e999]",
            '["\\ud800"]',
            "[" * 33 + "]" * 33,
            "[" * 40_000 + "]" * 40_000,
        ],
        ids=[
            "the same key twice",
            "no number",
            "too large a number",
            "half a character",
            "deep",
            "very deep",
        ],
    )
    def test_json_that_no_write_may_have_is_refused(self, text: str) -> None:
        with pytest.raises(SourceRefused):
            self.ask(self.answers(text))

    def test_of_a_value_that_is_too_deep_a_part_may_be_taken(self) -> None:
        assert isinstance(self.ask(self.answers("[" * 32 + "]" * 32)), Fetched)
        found = self.ask(self.answers('{"a": 1, "b": ' + "[" * 40 + "]" * 40 + "}") + "#/a")
        assert found == Fetched("1", found.etag, found.source_version)  # type: ignore[union-attr]

    def test_content_of_four_megabytes_is_taken_and_larger_is_refused(self) -> None:
        almost = 4 * 1024 * 1024 - 2000
        found = self.ask(self.answers(dump_json("x" * almost)))
        assert isinstance(found, Fetched)
        assert len(found.content_text) == almost + 2
        with pytest.raises(SourceRefused, match="4 MB"):
            self.ask(self.answers(dump_json(["x" * (almost + 2100)])))

    def test_what_is_not_there_is_refused(self) -> None:
        with pytest.raises(SourceRefused):
            self.ask(self.has_nothing())

    def test_what_fails_may_pass(self) -> None:
        with pytest.raises(SourceUnavailable):
            self.ask(self.fails(), VALUE)

    def test_an_address_that_is_none_is_refused(self) -> None:
        for uri in (None, "nothing", "http://", "s3://", "s3://bucket", "lambda:"):
            if self.kind != "external-db":
                with pytest.raises(SourceRefused):
                    self.ask(uri)

    def test_nothing_is_asked_after_the_deadline(self) -> None:
        uri = self.answers(dump_json(VALUE))
        with pytest.raises(SourceUnavailable):
            self.ask(uri, deadline=Deadline(0))

    def test_reasons_are_short_and_tell_nothing_of_the_source(self) -> None:
        for uri in (self.answers(f'["{SECRET}", NaN]'), self.has_nothing(), self.fails()):
            with pytest.raises((SourceRefused, SourceUnavailable)) as raised:
                self.ask(uri)
            assert len(raised.value.reason) < 150
            assert SECRET not in str(raised.value)
            assert not any(part in raised.value.reason for part in ("127.0.0.1", "acme", "source-bucket"))
