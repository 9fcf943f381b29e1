"""Routes that are to come: told apart from those that are served, and from what is no route."""

import re

import pytest

from factbook.api.planned import PLANNED, unserved
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
