"""The documentation against the code: every route, field, code, setting and command, and every example."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import BaseModel, RootModel
from support.gateway import ROOT, pattern_of
from support.tables import declared

from factbook.api.app import Route
from factbook.api.errors import STATUSES
from factbook.api.requests import Request, read_query, validate
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.domain.log.entries import Kind
from factbook.settings import Settings
from factbook_cli.main import known_commands
from factbook_local.openapi import load_apps

API = (ROOT / "docs" / "api.md").read_text()
SETTINGS = (ROOT / "docs" / "settings.md").read_text()
DECISIONS = (ROOT / "docs" / "adr" / "README.md").read_text()
OPENAPI = json.loads((ROOT / "openapi.json").read_text())
ROUTES = {route.key: route for app in load_apps() for route in app}
SECTIONS = {
    title.strip("`"): text
    for title, _, text in (part.partition("\n") for part in re.split(r"^### ", API, flags=re.MULTILINE)[1:])
}
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
FOLDERS = (
    "domain|ports|usecases|adapters|api|wiring|verify|factbook|functions|layers|local|cli|tests|docs|events"
)
EVERYWHERE = {error.code for error, status in STATUSES.items() if status in (401, 413, 429)} | {
    "storage-unavailable"
}
each_route = pytest.mark.parametrize("route", list(ROUTES.values()), ids=list(ROUTES))


def fields_of(model: type[BaseModel] | None) -> set[str]:
    if model is not None and issubclass(model, RootModel):  # an answer of one form or another
        return set().union(*map(fields_of, get_args(model.model_fields["root"].annotation)))
    return set() if model is None else {field.alias or name for name, field in model.model_fields.items()}


def examples(kind: str) -> Iterator[tuple[str, str]]:
    for key, text in SECTIONS.items():
        for block in re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL):
            yield key, block


def test_every_route_has_a_section_and_every_section_a_route() -> None:
    assert set(SECTIONS) == set(ROUTES)


def bounds_of(
    schema: dict[str, Any], name: str, known: frozenset[str] = frozenset()
) -> Iterator[tuple[str, int]]:
    """Each bound that a schema of openapi.json sets, and the field that has it; items count as their list's."""
    if "$ref" in schema:
        title = schema["$ref"].rpartition("/")[2]
        if title not in known:
            yield from bounds_of(OPENAPI["components"]["schemas"][title], name, known | {title})
        return
    for kind in ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum"):
        if kind in schema:
            yield name, int(schema[kind])
    for field, inside in schema.get("properties", {}).items():
        yield from bounds_of(inside, field, known)
    parts = [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for inside in (*parts, *schema.get("anyOf", ())):
        yield from bounds_of(inside, name, known)


def test_every_limit_of_a_request_is_listed() -> None:
    text = API.partition("\n## Limits\n")[2].partition("\n## ")[0]
    operations = [each for path in OPENAPI["paths"].values() for each in path.values()]
    schemas = [
        (body["schema"], "")
        for each in operations
        for body in each.get("requestBody", {}).get("content", {}).values()
    ]
    schemas += [(each["schema"], each["name"]) for one in operations for each in one.get("parameters", ())]
    own = {"clear", "index", "contentRef"}  # words and references of the service's own
    bounds = {
        (name, most)
        for schema, name in schemas
        for name, most in bounds_of(schema, name)
        if most != 256 and most < 10**15 and name not in own
    }

    assert len(bounds) > 20
    assert {
        (name, most)
        for name, most in bounds
        if not any(f"`{name}`" in row and f"{most:,}" in row for row in text.splitlines())
    } == set()


@each_route
def test_a_section_names_every_field_and_every_code_of_its_route(route: Route) -> None:
    text = SECTIONS[route.key]
    named = set(re.findall(r"`([^`\s]+)`", text)) | set(re.findall(r"`(\w+)[=:]", text))
    assert fields_of(route.body) | fields_of(route.query) <= named
    assert {refusal.code for refusal in route.refusals} <= named
    assert route.status in (200, 307) or str(route.status) in text


def test_the_table_of_errors_has_every_code_beside_its_status() -> None:
    rows = {
        code: statuses
        for statuses, cell in re.findall(r"^\| ([\d, ]+) \| (.*) \|$", API, re.MULTILINE)
        for code in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", cell)
    }
    for error, status in STATUSES.items():
        assert str(status) in rows[error.code]
    assert set(rows) == {error.code for error in STATUSES} | {"internal-error"}


@each_route
def test_a_section_has_an_example_request_that_the_route_takes(route: Route) -> None:
    (example,) = [block for key, block in examples("http") if key == route.key]
    line, _, body = example.partition("\n\n")
    method, target = line.split()
    parts = urlsplit(target)
    assert method == route.method
    assert pattern_of(route.path).fullmatch(parts.path)
    query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    if route.query is None:
        assert not query
    else:
        read_query(route.query, Request(route.key, "", {}, {}, query, b""))
    if route.body is None:
        assert not body
    else:
        validate(route.body, json.loads(body))


@pytest.mark.parametrize(("key", "block"), list(examples("json")))
def test_an_example_answer_has_only_fields_that_its_route_answers(key: str, block: str) -> None:
    answer: dict[str, Any] = json.loads(block)
    assert set(answer) <= fields_of(ROUTES[key].answer) | {"content"}


def test_every_kind_of_entry_and_every_part_and_value_of_a_source_is_listed() -> None:
    append, write = SECTIONS["POST /v1/memory/runs/{runId}/log"], SECTIONS["POST /v1/memory/facts"]
    assert set(get_args(Kind)) <= set(re.findall(r"`([a-z-]+)`", append))
    named = set(re.findall(r"`([\w-]+)`", write))
    for model in (Source, Freshness, Refresh):
        assert fields_of(model) <= named
    assert {*get_args(Source.model_fields["kind"].annotation)} <= named
    assert {*get_args(Refresh.model_fields["strategy"].annotation)} <= named


def test_every_setting_and_variable_of_the_template_is_documented() -> None:
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", SETTINGS, re.MULTILINE))
    assert documented == {name.upper() for name in Settings.__dataclass_fields__}
    for function in declared().functions.values():
        assert set(function.environment) <= set(re.findall(r"`([A-Z_]+)`", SETTINGS))


def test_the_default_of_every_setting_is_the_documented_one() -> None:
    defaults = dict(re.findall(r"^\| `([A-Z_]+)` \| (?:`([^`]*)`)? ?\|", SETTINGS, re.MULTILINE))
    assert {name.lower(): default for name, default in defaults.items()} == {
        name: field.default for name, field in Settings.__dataclass_fields__.items()
    }


def test_every_command_is_documented() -> None:
    documented = re.findall(r"^\| `factbook (\w+)` \| (.*) \|$", SETTINGS, re.MULTILINE)
    commands = known_commands()
    assert {"local", "demo", "token"} <= set(commands)
    assert {name for name, _ in documented} == set(commands)
    for name, text in documented:
        assert text.partition(";")[0] == commands[name][1]


def test_links_between_pages_lead_somewhere() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^)]*)\)", page.read_text()):
        if target.startswith("http") or anchor.startswith("//"):
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_a_page_names_is_there(page: Path) -> None:
    roots = (ROOT, ROOT / "layers" / "factbook", ROOT / "layers" / "factbook" / "factbook")
    named = re.findall(rf"`((?:{FOLDERS})/[\w/.-]+)`", page.read_text())
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def test_every_page_stands_behind_one_of_the_two_doors() -> None:
    doors = re.findall(r"\]\(([^)]+\.md)\)", (ROOT / "docs" / "README.md").read_text())
    behind = {(ROOT / "docs" / target).resolve() for target in doors}
    decisions = set((ROOT / "docs" / "adr").glob("0*.md"))
    listed = {
        (ROOT / "docs" / "adr" / name).resolve() for name in re.findall(r"\((0[\w-]+\.md)\)", DECISIONS)
    }
    assert set(PAGES) - decisions <= behind | {ROOT / "docs" / "README.md"}
    assert decisions == listed


def test_the_status_table_claims_no_route_that_is_not_there_and_plans_none_that_is() -> None:
    table = (ROOT / "README.md").read_text().partition("## Status")[2].partition("\n## ")[0]
    rows = [row.split("|")[2:4] for row in table.splitlines() if row.startswith("| ")]
    assert len(rows) > 8
    route = re.compile(r"`((?:GET|POST|PUT|DELETE) [^`]+)`")
    built, planned = ({key for row in rows for key in route.findall(row[column])} for column in (0, 1))
    assert built <= set(ROUTES)
    assert planned
    assert not planned & set(ROUTES)


def test_the_costs_add_up() -> None:
    table = (ROOT / "docs" / "cost.md").read_text().partition("## Two loads")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \**([\w ]+?)\** \| \**\$([\d.]+)\** \| \**\$([\d.]+)\** \|$", table, re.MULTILINE)
    *parts, (name, *totals) = rows
    assert name == "together"
    for column, total in enumerate(totals, start=1):
        assert round(sum(float(row[column]) for row in parts), 2) == float(total)
    readme = re.search(
        r"^\| \*\*the service\*\* \| \*\*\$(\d+)\*\* \| \*\*\$(\d+)\*\* \|$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    assert readme is not None
    assert list(readme.groups()) == [str(round(float(total))) for total in totals]


def test_what_is_printed_when_something_goes_wrong_is_what_the_code_prints() -> None:
    """Each line of the tables, between what differs, stands in the code or in a test of it, whatever it is broken into."""
    code = "".join(
        file.read_text()
        for folder in ("layers", "cli", "local", "tests/functional")
        for file in sorted((ROOT / folder).rglob("*.py"))
    )
    told = re.sub(r'"\s*(?:#[^\n]*)?\n\s*f?"', "", code + (ROOT / "Makefile").read_text())
    told = re.sub(r"\{[^{}\s][^{}\n]*\}", "…", told.replace('\\"', '"').replace("{{", "{").replace("}}", "}"))
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", (ROOT / "docs" / "trouble.md").read_text(), re.MULTILINE)
    lines = [line for row in rows for line in re.findall(r"`([^`]+)`", row)]
    assert len(lines) > 30
    said = re.sub(r"\W+", " ", told)
    for line in lines:
        for part in re.split(
            r"…|^TAMPERED: line|^unsupported: |^incomplete: |\(it ends", re.sub(r"\{.*\}", "…", line)
        ):
            assert re.sub(r"\W+", " ", part).strip() in said, line
