"""What the commands make of a service that answers anything at all: an end, and one line."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from factbook_cli.answers import UnexpectedAnswer, shown
from factbook_cli.export import Export

NOTE = {"size": 5, "note": "note", "vkey": "v"}
LEAF = {"index": 0, "runId": "r", "sequence": 0, "head": "h", "salt": "s"}


class Liar:
    """Answers by the last part of a path."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"latest": NOTE, "whoami": {"tenantId": "t"}, "leaves": {"data": [LEAF]}} | answers
        self.calls = 0

    def get(self, *path: str, **_: Any) -> Any:
        self.calls += 1
        assert self.calls < 50, "it never ends"
        return self.answers.get(path[-1], {"data": [], "hasMore": False})


ENDLESS = {"data": [], "leaves": [], "hasMore": True, "nextCursor": "c"}
SURROGATE = {"sequence": 0, "format": "f", "entryHash": "h", "canonical": "\ud800"}


@pytest.mark.parametrize(
    "answers",
    [
        {"leaves": {"data": [], "next": 0}},
        {"leaves": {"data": [], "next": "1"}},
        {"checkpoints": ENDLESS},
        {"log": ENDLESS},
        {"latest": [1]},
        {"latest": {"note": "note"}},
        {"whoami": {}},
        {"log": {"data": [SURROGATE], "leaves": [], "hasMore": False}},
        {"log": {"data": []}},
    ],
)
def test_an_export_from_a_service_that_lies_ends_with_one_line(answers: dict[str, Any]) -> None:
    def everything(export: Export) -> Any:
        return export.everything()

    makers: list[Callable[[Export], Any]] = [everything]
    if answers.keys() & {"log", "latest", "whoami"}:
        makers.append(lambda export: export.run("r", []))
    for make in makers:
        export = Export(Liar(**answers), io.BytesIO(), lambda _: None)  # type: ignore[arg-type]
        with pytest.raises(UnexpectedAnswer, match="not what this command expects"):
            make(export)


def test_text_of_the_service_moves_no_cursor_and_sets_no_title() -> None:
    assert shown("\x1b]0;owned\x07\x1b[2Jnote\u202e\n") == "?]0;owned??[2Jnote?\n"
