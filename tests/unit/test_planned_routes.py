"""Routes that are to come: told apart from those that are served, and from what is no route."""

import re

import pytest

from factbook.api.planned import PLANNED, unserved
from factbook.api.served import SERVED
from factbook_local.openapi import load_apps


def path_of(route: str) -> str:
    return re.sub(r"\{\w+\}", "x", route.partition(" ")[2])


def shape(route: str) -> str:
    return re.sub(r"\{\w+\}", "{}", route)


def test_a_route_that_is_served_is_not_planned() -> None:
    served = {shape(route.key) for app in load_apps() for route in app}
    assert not served & {shape(route) for route in PLANNED}


@pytest.mark.parametrize("route", PLANNED)
def test_a_planned_route_is_unsupported_and_another_method_or_path_is_not_found(route: str) -> None:
    method, path = route.split()[0], path_of(route)
    assert unserved(method, path).code == "memory-operation-unsupported"
    for other in ("PATCH", method.lower(), f"{method} {method}"):
        assert unserved(other, path).code == "not-found"
    for elsewhere in (path + "/", path + "/x/y", "/x" + path, path.upper()):
        assert unserved(method, elsewhere).code == "not-found"


def test_the_table_of_served_paths_is_what_the_functions_serve() -> None:
    routes = sorted(route.key for app in load_apps() for route in app)
    assert routes == sorted(f"{method} {path}" for path, methods in SERVED.items() for method in methods)


@pytest.mark.parametrize("path", SERVED)
def test_another_method_of_a_served_path_is_told_those_it_takes(path: str) -> None:
    refusal = unserved("PATCH", path_of(f"PATCH {path}"))
    assert refusal.code == "not-found"
    assert f"{path} takes {' and '.join(SERVED[path])}." in refusal.message


@pytest.mark.parametrize("path", ["/", "", "/v1/memory/facts/secret/b", "/v2/memory/secret", "/secret/"])
def test_a_path_that_is_like_no_served_one_is_not_repeated(path: str) -> None:
    message = unserved("GET", path).message
    assert message.startswith("There is no such route. ")
    assert "secret" not in message


@pytest.mark.parametrize("path", SERVED)
def test_a_path_that_is_nearly_served_is_told_the_served_one_without_its_ids(path: str) -> None:
    whole = path_of(f"GET {path}")
    nearly = [f"{whole}/", whole.replace("/", "//"), f"/v1{whole}", whole.removeprefix("/v1")]
    for wrong in nearly[:2] if path == "/health" else nearly:
        assert unserved("GET", wrong).message.endswith(f" It is {path}.")
