"""The list of runs over the locked fake: every run its reader may read, once, newest first, and no other."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.access_model import Grants, Json, grants, may_read, palettes, scopes
from support.log_fakes import FakeLog

from factbook.domain.scope import Scope
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log.reading import list_runs
from factbook.usecases.merging import NEWEST

from .test_listing import principal_of


def opened(number: int, place: Json, run_id: str) -> StoredEntry:
    at = f"2026-01-01T00:00:00.{number // 2:06d}Z"  # two at a time: their order then is the id's
    return StoredEntry("t", run_id, 0, "{}", "h", "f", timestamp=at, opens=Scope(tenantId="t", **place))


@st.composite
def logs(draw: st.DrawFn) -> tuple[FakeLog, list[tuple[Json, str]], Grants, Json]:
    palette = draw(palettes)
    log, kept = FakeLog(), []
    for number, place in enumerate(draw(st.lists(scopes(palette), max_size=40))):
        run_id = f"{draw(st.sampled_from(['r', 'r', '_r']))}{number:03d}"
        assert log.put([opened(number, place, run_id)]) is None
        kept.append((place, run_id))
    wanted = draw(st.sampled_from([{}, {}, *(place for place, _ in kept[:3])]))
    return log, kept, draw(grants(palette)), wanted


@settings(max_examples=150)
@given(drawn=logs(), limit=st.integers(1, 12))
def test_a_walk_returns_each_readable_run_once_newest_first(
    drawn: tuple[FakeLog, list[tuple[Json, str]], Grants, Json], limit: int
) -> None:
    log, kept, who, wanted = drawn
    expected = {
        run_id
        for place, run_id in kept
        if may_read(who, place)
        and wanted.items() <= place.items()
        and (who.admin or not run_id.startswith("_"))
    }
    found, position = [], NEWEST
    while position is not None:
        page = list_runs(log, principal_of(who), wanted, limit, position)
        assert len(page.runs) <= limit
        assert page.position is None or page.position < position
        position = page.position
        found += page.runs
    assert [row.order for row in found] == sorted((row.order for row in found), reverse=True)
    assert len(found) == len(expected)
    assert {row.run_id for row in found} == expected


def test_a_row_tells_the_run_its_scope_and_when_it_began() -> None:
    log = FakeLog()
    log.put([opened(0, {"projectId": "p"}, "run:|1")])
    (row,) = list_runs(log, principal_of(Grants(admin=True)), {}, 5).runs
    assert (row.run_id, row.scope.project_id) == ("run:|1", "p")
    assert row.started_at == "2026-01-01T00:00:00.000000Z"
