"""docs/local.md names every option, setting and answer of the gateway there is."""

import argparse
import re
from pathlib import Path

from factbook_local import environment, gateway, local
from factbook_local.stack import EVENT_SOURCES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "local.md").read_text()


def test_every_option_is_documented() -> None:
    parser = argparse.ArgumentParser()
    local.add_arguments(parser)
    public = [
        action for action in parser._actions if action.help is not argparse.SUPPRESS and action.dest != "help"
    ]
    assert len(public) >= 7
    assert [action.option_strings[0] for action in public if f"`{action.option_strings[0]}" not in PAGE] == []


def test_every_setting_of_the_caller_that_is_passed_on_is_documented() -> None:
    page = PAGE.replace("KINDGI_`", "KINDGI_MEMORY_`")
    assert [
        prefix for prefix in environment._PASSED_ON if prefix not in page and prefix != "AWS_LAMBDA_LOG_LEVEL"
    ] == []


def test_every_status_of_the_gateways_own_is_documented() -> None:
    calls = re.findall(r"_own\(([^)]*)\)", Path(gateway.__file__).read_text())
    statuses = set(re.findall(r"\b[45]\d\d\b", " ".join(calls)))
    assert statuses >= {"400", "404", "413", "431", "500", "503"}
    assert {status for status in statuses if f"| {status} |" not in PAGE} == set()


def test_every_property_of_an_event_source_that_is_followed_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \| .* \|$", PAGE, re.MULTILINE))
    for kind, properties in EVENT_SOURCES.items():
        assert {name for name in properties if f"`{name}`" not in rows[kind]} == set()
