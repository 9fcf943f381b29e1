"""openapi.json from the functions' route tables: `python -m factbook_local.openapi` prints it."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from factbook import __version__
from factbook.api.app import JSON, App, Route
from factbook.api.errors import STATUSES
from factbook.api.models import ErrorAnswer
from factbook.domain import errors as e
from factbook.domain.facts.fact import Fact

ROOT = Path(__file__).parents[2]
ALWAYS = (e.BadInput, e.AuthMissing, e.AuthExpired, e.AuthRevoked, e.Throttled, e.StorageUnavailable)
WITH_FIELDS = (e.UnknownField,)
WITH_BODY = (e.RequestTooLarge, e.UnknownField, e.ValidationFailed)
_REF = "#/components/schemas/{model}"


def load_apps(folder: Path = ROOT / "functions") -> list[App]:
    """The apps of every function that serves routes."""
    apps = []
    for path in sorted(folder.glob("*/app.py")):
        spec = importlib.util.spec_from_file_location(f"function_{path.parent.name}", path)
        if spec is None or spec.loader is None:
            raise ImportError(str(path))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        app = getattr(module, "app", None)
        if isinstance(app, App):
            apps.append(app)
    return apps


def describe(apps: Iterable[App]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of all routes."""
    routes = sorted((route for app in apps for route in app), key=lambda route: (route.path, route.method))
    named, schemas = _schemas(routes)
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Factbook",
            "version": __version__,
            "description": "Agent memory: typed, versioned facts and a tamper-evident log.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


Named = dict[tuple[type[BaseModel], JsonSchemaMode], dict[str, Any]]


def _schemas(routes: list[Route]) -> tuple[Named, dict[str, Any]]:
    wanted: set[tuple[type[BaseModel], JsonSchemaMode]] = {(ErrorAnswer, "serialization")}
    for route in routes:
        wanted |= {(model, "validation") for model in (route.body,) if model is not None}
        wanted |= {(model, "serialization") for model in (route.answer,) if model is not None}
    ordered = sorted(wanted, key=lambda each: (each[0].__name__, each[1]))
    refs, definitions = models_json_schema(ordered, by_alias=True, ref_template=_REF)
    named = {(model, mode): refs[(model, mode)] for model, mode in ordered}
    schemas: dict[str, Any] = _without_nulls(definitions["$defs"])
    shown: list[type[BaseModel]] = [Fact, *Fact.__subclasses__()]
    facts = {model.__name__ for model in shown}
    for name, schema in schemas.items():
        if name.split("-")[0] in facts:
            schema["properties"]["content"] = {"description": "Any JSON, as it was sent"}
        if "properties" in schema and "title" in schema:
            schema.pop("title")
    return named, schemas


def _without_nulls(schema: Any) -> Any:
    """Absent fields are left out, never null: an optional field is not a nullable one."""
    if isinstance(schema, list):
        return [_without_nulls(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        name: _without_nulls(value)
        for name, value in schema.items()
        if not (name == "default" and value is None)
    }
    choices = cleaned.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        left = [choice for choice in choices if choice != {"type": "null"}]
        cleaned.pop("anyOf")
        cleaned |= left[0] if len(left) == 1 else {"anyOf": left}
    return cleaned


def _operation(route: Route, named: Named) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {str(route.status): _success(route, named), **_refusals(route, named)},
    }
    if not operation["parameters"]:
        del operation["parameters"]
    if route.public:
        operation["security"] = []
    if route.body is not None:
        content = {route.takes: {"schema": named[(route.body, "validation")]}}
        operation["requestBody"] = {"required": _needs_body(route.body), "content": content}
    return operation


def _needs_body(model: type[BaseModel]) -> bool:
    return any(field.is_required() for field in model.model_fields.values())


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", route.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = _without_nulls(route.query.model_json_schema(by_alias=True))
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _untitled(described)}
        for name, described in schema["properties"].items()
    ]


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "title"}


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    if not route.idempotent:
        return []
    schema = {"type": "string", "minLength": 1, "maxLength": 255}
    return [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema}]


def _success(route: Route, named: Named) -> dict[str, Any]:
    if route.status == 307:
        location = {"description": "A presigned download", "schema": {"type": "string"}}
        return {"description": "Redirect", "headers": {"Location": location}}
    answer: dict[str, Any] = {"description": route.summary}
    if route.gives != JSON:
        answer["content"] = {route.gives: {"schema": {"type": "string"}}}
    if route.answer is not None:
        answer["content"] = {"application/json": {"schema": named[(route.answer, "serialization")]}}
    return answer


def _refusals(route: Route, named: Named) -> dict[str, Any]:
    if route.public:
        return {}
    refusals: set[type[e.FactbookError]] = {*ALWAYS, *route.refusals}
    if route.query is not None:
        refusals |= set(WITH_FIELDS)
    if route.body is not None:
        refusals |= set(WITH_BODY)
    by_status: dict[int, set[str]] = {}
    for refusal in refusals:
        by_status.setdefault(STATUSES[refusal], set()).add(refusal.code)
    content = {"application/json": {"schema": named[(ErrorAnswer, "serialization")]}}
    return {
        str(status): {"description": " · ".join(sorted(codes)), "content": content}
        for status, codes in sorted(by_status.items())
    }


def main() -> int:
    sys.stdout.write(json.dumps(describe(load_apps()), indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
