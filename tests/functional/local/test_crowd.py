"""Many callers at once and hostile requests, in small; benchmarks/crowd.py and benchmarks/assault.py do it in full."""

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from support.gateway import ROOT

from factbook_local.testing import Ready, running


def benchmark(name: str) -> ModuleType:
    """A script of benchmarks/, as a module."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


crowd, assault = benchmark("crowd"), benchmark("assault")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with running(tmp_path_factory.mktemp("crowd"), crowd.TENANTS) as ready:
        yield ready


@pytest.mark.exhaustive
def test_each_answer_goes_to_its_asker(service: Ready) -> None:
    assert crowd.ask_at_once(service, each=250) == {"own": 2_000}


@pytest.mark.exhaustive
def test_what_sixteen_writers_write_at_once_is_there_once(service: Ready) -> None:
    assert crowd.write_at_once(service, "one", writers=16, each=200) == {"there": 3_200}


def test_hostile_requests_are_refused_and_the_service_stays_well(service: Ready) -> None:
    found = assault.assail(service, requests=500, seed=7)

    assert found.broken == []
    assert sum(found.statuses.values()) == 500
    assert set(found.silent) <= assault.UNFINISHED
    assert found.good, found
    assert {200, 400, 401, 404} <= set(found.statuses)
