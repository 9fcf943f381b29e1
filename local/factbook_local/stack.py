"""What a template asks for, as records the runner works with: functions, routes, tables, queues, event sources.

Names are known before anything exists; ARNs and ids come from `provision` and are read with `Template.resolve`.
"""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from factbook_local.limits import LIMITS, Limit
from factbook_local.template import Template, TemplateError

STACK = "factbook"
DEFAULT_ROUTE = "$default"
EVENT_SOURCES = {
    "HttpApi": {"ApiId", "Path", "Method"},
    "DynamoDB": {
        "Stream",
        "StartingPosition",
        "BatchSize",
        "BisectBatchOnFunctionError",
        "FunctionResponseTypes",
        "MaximumRetryAttempts",
        "MaximumRecordAgeInSeconds",
        "DestinationConfig",
    },
    "SQS": {"Queue", "BatchSize", "FunctionResponseTypes", "ScalingConfig"},
    "ScheduleV2": {"ScheduleExpression", "OmitName"},
}
"""Type → the properties that local mode follows. Any other is refused: what is not followed would be misread."""
_LATE = {"ApiId", "Stream", "Queue", "DestinationConfig"}
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")


@dataclass(frozen=True)
class Function:
    """`timeout` in seconds, `paths` the folders of its code and its layers, `environment` unresolved."""

    logical_id: str
    name: str
    paths: tuple[Path, ...]
    handler: str
    timeout: float
    memory: int
    environment: dict[str, Any]
    concurrency: int | None


@dataclass(frozen=True)
class Route:
    """`key` as API Gateway writes it: `GET /things/{id}`, `ANY /things` or `$default`."""

    key: str
    function: str


@dataclass(frozen=True)
class StreamSource:
    """A DynamoDB event source of a function, from the stream's oldest record on. `function`, `table`: logical ids."""

    function: str
    table: str
    name: str
    batch_size: int = 100
    partial: bool = False
    bisect: bool = False
    retries: int = -1
    max_age: float = -1.0
    on_failure: Any = None


@dataclass(frozen=True)
class QueueSource:
    """An SQS event source of a function. `function` and `queue` are logical ids."""

    function: str
    queue: str
    name: str
    batch_size: int = 10
    partial: bool = False


@dataclass(frozen=True)
class Schedule:
    """Runs of a function at a fixed rate."""

    function: str
    name: str
    every: timedelta


@dataclass
class Stack:
    """Everything the runner serves. Maps of logical id → physical name, and the resources' properties."""

    template: Template
    functions: dict[str, Function] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    streams: list[StreamSource] = field(default_factory=list)
    queues: list[QueueSource] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)

    def named(self, *types: str) -> dict[str, tuple[str, dict[str, Any]]]:
        """Logical id → (physical name, properties) of the resources of these types."""
        return {
            logical: (self.physical_name(logical, properties), properties)
            for logical, properties in self.template.of_type(*types).items()
        }

    def physical_name(self, logical: str, properties: dict[str, Any]) -> str:
        given = next((properties[name] for name in _NAME_PROPERTIES if name in properties), None)
        if given is not None:
            return str(self.template.resolve(given))
        kind = self.template.resources[logical]["Type"]
        name = f"{STACK}-{logical}"
        return name.lower() if kind == "AWS::S3::Bucket" else name


_NAME_PROPERTIES = ("FunctionName", "TableName", "BucketName", "QueueName", "Name")


def read_stack(template: Template) -> Stack:
    """Read a template's functions and event sources. Raises TemplateError for what local mode cannot run."""
    if template.of_type("AWS::OpenSearchService::Domain"):
        raise TemplateError(
            "local mode makes no search domain: leave Search out, and set OPENSEARCH_URL to one"
        )
    stack = Stack(template)
    for logical, (name, properties) in stack.named("AWS::Serverless::Function").items():
        stack.functions[logical] = _function(template, logical, name, properties)
        for event, spec in (properties.get("Events") or {}).items():
            _read_event(stack, logical, event, spec["Type"], spec.get("Properties") or {})
    return stack


def _function(template: Template, logical: str, name: str, properties: dict[str, Any]) -> Function:
    layers = [
        template.of_type("AWS::Serverless::LayerVersion")[_target(layer)]["ContentUri"]
        for layer in properties.get("Layers") or []
        if isinstance(layer, dict)
    ]
    folders = [template.folder / folder for folder in (properties.get("CodeUri", "."), *layers)]
    concurrency = template.resolve(properties.get("ReservedConcurrentExecutions"))
    return Function(
        logical_id=logical,
        name=name,
        handler=properties["Handler"],
        paths=tuple(
            path
            for folder in folders
            for path in (folder, folder / "python")
            if path == folder or path.is_dir()
        ),
        timeout=float(template.resolve(properties.get("Timeout", 3))),
        memory=int(template.resolve(properties.get("MemorySize", 128))),
        environment=(properties.get("Environment") or {}).get("Variables") or {},
        concurrency=None if concurrency is None else int(concurrency),
    )


def _read_event(stack: Stack, function: str, event: str, kind: str, properties: dict[str, Any]) -> None:
    name = f"{function}{event}"
    unknown = sorted(properties.keys() - EVENT_SOURCES.get(kind, set()))
    if kind not in EVENT_SOURCES or unknown:
        what = (
            f"the property {unknown[0]} of {kind}"
            if kind in EVENT_SOURCES
            else f"event sources of type {kind}"
        )
        raise TemplateError(f"{function}: local mode does not know {what} ({event})")
    # What names a resource stays as it is until the resource is there.
    said = {key: value for key, value in properties.items() if key not in _LATE}
    said = stack.template.resolve(said)
    match kind:
        case "HttpApi":
            path, method = said.get("Path", DEFAULT_ROUTE), str(said.get("Method", "ANY")).upper()
            if "+}" in path:
                raise TemplateError(f"{function}: local mode has no greedy paths ({event})")
            stack.routes.append(Route(path if path == DEFAULT_ROUTE else f"{method} {path}", function))
        case "DynamoDB":
            if said.get("StartingPosition") != "TRIM_HORIZON":
                raise TemplateError(f"{function}: local mode reads a stream from TRIM_HORIZON ({event})")
            stack.streams.append(_stream_source(function, name, properties, said))
        case "SQS":
            stack.queues.append(
                QueueSource(
                    function=function,
                    queue=_target(properties["Queue"]),
                    name=name,
                    batch_size=_batch_size(name, said, 10, LIMITS["batch at once"]),
                    partial=_partial(said),
                )
            )
        case _:
            stack.schedules.append(Schedule(function, name, _rate(function, said["ScheduleExpression"])))


def _rate(function: str, expression: str) -> timedelta:
    match = _RATE.fullmatch(expression)
    if match is None:
        raise TemplateError(f"{function}: local mode runs rate(…) alone, not {expression!r}")
    return timedelta(**{f"{match[2]}s": int(match[1])})


def _target(value: Any) -> str:
    """The logical id that a `!Ref` or `!GetAtt` names."""
    if isinstance(value, dict):
        if "Ref" in value:
            return str(value["Ref"])
        if "Fn::GetAtt" in value:
            return str(value["Fn::GetAtt"][0])
    raise TemplateError(f"local mode needs a !Ref or !GetAtt here, not {value!r}")


def _batch_size(name: str, said: dict[str, Any], usual: int, limit: Limit) -> int:
    """Raises TemplateError for what Lambda refuses."""
    size = int(said.get("BatchSize", usual))
    if not 1 <= size <= limit.most:
        raise TemplateError(f"{name}: a batch holds 1 to {limit.most} records, not {size}")
    return size


def _partial(properties: dict[str, Any]) -> bool:
    return "ReportBatchItemFailures" in (properties.get("FunctionResponseTypes") or [])


def _stream_source(
    function: str, name: str, properties: dict[str, Any], said: dict[str, Any]
) -> StreamSource:
    return StreamSource(
        function=function,
        table=_target(properties["Stream"]),
        name=name,
        batch_size=_batch_size(name, said, 100, LIMITS["batch"]),
        partial=_partial(said),
        bisect=bool(said.get("BisectBatchOnFunctionError", False)),
        retries=int(said.get("MaximumRetryAttempts", -1)),
        max_age=float(said.get("MaximumRecordAgeInSeconds", -1)),
        on_failure=((properties.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination"),
    )
