"""A start that takes long says what it is about, and one that does not says nothing."""

import asyncio
import io
import json
from collections.abc import Iterable

import pytest
from support.gateway import ROOT

from factbook_local import progress
from factbook_local import runner as runner_module
from factbook_local.runner import Options, Runner
from factbook_local.stack import read_stack
from factbook_local.template import Template
from factbook_local.workers import Outcome


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, texts: Iterable[str], quiet: float = 0.0
) -> str:
    """What is written while a start goes through these texts."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "TERMINAL_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    left = iter(texts)

    async def run() -> None:
        over = asyncio.Event()

        async def doing() -> str:
            if (text := next(left, None)) is None:
                over.set()
                await asyncio.Event().wait()
            return str(text)

        showing = asyncio.ensure_future(progress.show(doing, quiet=quiet))
        if not quiet:
            await asyncio.wait_for(over.wait(), 30)
        else:
            await asyncio.sleep(0)
        showing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await showing

    asyncio.run(run())
    return stream.getvalue()


def test_a_terminal_has_one_line_that_is_rewritten_and_gone_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = shown(monkeypatch, Terminal(), ["Loading …", "a", "a"])
    assert written == "\rLoading …\ra        \ra\r \r"


def test_elsewhere_a_line_stands_for_each_thing_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(monkeypatch, io.StringIO(), ["Loading …", "Loading …", "100 records", "200 records"])
    assert written == "Loading …\n100 records\n200 records\n"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_start_that_is_over_soon_says_nothing(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    assert shown(monkeypatch, stream, ["Loading …"], quiet=60.0) == ""


def test_while_the_index_is_compared_it_says_how_many_records_have_been_seen() -> None:
    class Index:
        async def invoke(self, event: bytes) -> Outcome:
            assert json.loads(event) == {"factbook": "progress"}  # it only looks
            return Outcome("r", json.dumps({"job": {"records": 1200}}).encode())

    runner = Runner(Options(ROOT / "template.yaml"))
    runner.stack = read_stack(Template(ROOT / "template.yaml", runner_module._pseudo_parameters(), {}))
    runner.pools = {"IndexFunction": Index()}  # type: ignore[dict-item]
    assert asyncio.run(runner.doing()) == "Starting …"
    runner._doing = runner_module.COMPARING
    assert asyncio.run(runner.doing()) == (
        "Comparing the search index with the tables … 1,200 records so far"
    )
