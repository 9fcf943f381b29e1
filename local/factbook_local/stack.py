"""What a template asks for, as records the runner works with: functions, routes, tables, queues, event sources.

Names are known before anything exists; ARNs and ids come from `provision` and are read with `Template.resolve`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factbook_local.limits import LIMITS
from factbook_local.template import Template, TemplateError

STACK = "factbook"
DEFAULT_ROUTE = "$default"


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
    """`key` as API Gateway writes it: `GET /things/{id}`, `ANY /things/{proxy+}` or `$default`."""

    key: str
    function: str


@dataclass(frozen=True)
class StreamSource:
    """A DynamoDB event source of a function. `function` and `table` are logical ids; ages and windows in seconds."""

    function: str
    table: str
    name: str
    batch_size: int = 100
    window: float = 0.0
    filters: tuple[dict[str, Any], ...] = ()
    partial: bool = False
    bisect: bool = False
    retries: int = -1
    max_age: float = -1.0
    on_failure: Any = None
    starting: str = "TRIM_HORIZON"
    tumbling: float = 0.0


@dataclass(frozen=True)
class QueueSource:
    """An SQS event source of a function. `function` and `queue` are logical ids."""

    function: str
    queue: str
    name: str
    batch_size: int = 10
    window: float = 0.0
    filters: tuple[dict[str, Any], ...] = ()
    partial: bool = False
    concurrency: int = 2


@dataclass(frozen=True)
class Schedule:
    """`expression`: `rate(…)`, `cron(…)` or `at(…)`; `payload` the function's event, None for the service's own."""

    function: str
    name: str
    expression: str
    payload: Any = None
    timezone: str = "UTC"
    retries: int = 185
    scheduler: bool = True


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
        if kind == "AWS::S3::Bucket":
            return name.lower()
        return name + (".fifo" if properties.get("FifoQueue") else "")


_NAME_PROPERTIES = ("FunctionName", "TableName", "BucketName", "QueueName", "Name")


def read_stack(template: Template) -> Stack:
    """Read a template's functions and event sources. Raises TemplateError for what local mode cannot run."""
    stack = Stack(template)
    for logical, (name, properties) in stack.named("AWS::Serverless::Function").items():
        stack.functions[logical] = _function(template, logical, name, properties)
        for event, spec in (properties.get("Events") or {}).items():
            _read_event(stack, logical, event, spec["Type"], spec.get("Properties") or {})
    for name, properties in template.of_type("AWS::Lambda::EventSourceMapping").items():
        properties = dict(properties)
        function = _target(properties["FunctionName"])
        source = _target(properties["EventSourceArn"])
        if template.resources[source]["Type"] == "AWS::SQS::Queue":
            stack.queues.append(_queue_source(function, name, source, properties))
        else:
            stack.streams.append(_stream_source(function, name, source, properties))
    for name, properties in template.of_type("AWS::Scheduler::Schedule").items():
        target = properties["Target"]
        stack.schedules.append(
            _schedule(_target(target["Arn"]), name, properties | {"Input": target.get("Input")})
        )
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
    match kind:
        case "HttpApi":
            path, method = properties.get("Path", DEFAULT_ROUTE), str(properties.get("Method", "ANY")).upper()
            key = (
                DEFAULT_ROUTE
                if path == DEFAULT_ROUTE
                else f"{method.replace('X-AMAZON-APIGATEWAY-ANY-METHOD', 'ANY')} {path}"
            )
            stack.routes.append(Route(key, function))
        case "DynamoDB":
            stack.streams.append(
                _stream_source(function, name, _target(properties["Stream"]), _resolved(stack, properties))
            )
        case "SQS":
            stack.queues.append(
                _queue_source(function, name, _target(properties["Queue"]), _resolved(stack, properties))
            )
        case "Schedule" | "ScheduleV2":
            stack.schedules.append(
                _schedule(function, name, _resolved(stack, properties), scheduler=kind == "ScheduleV2")
            )
        case _:
            raise TemplateError(f"{function}: local mode has no event source of type {kind} ({event})")


def _resolved(stack: Stack, properties: dict[str, Any]) -> dict[str, Any]:
    """The properties whose values stand fast before anything exists; destinations stay as they are."""
    late = {"Stream", "Queue", "DestinationConfig", "DeadLetterConfig"}
    return {
        name: value if name in late else stack.template.resolve(value) for name, value in properties.items()
    }


def _target(value: Any) -> str:
    """The logical id that a `!Ref` or `!GetAtt` names."""
    if isinstance(value, dict):
        if "Ref" in value:
            return str(value["Ref"])
        if "Fn::GetAtt" in value:
            return str(value["Fn::GetAtt"][0])
    raise TemplateError(f"local mode needs a !Ref or !GetAtt here, not {value!r}")


def _gathered(name: str, properties: dict[str, Any], usual: int) -> tuple[int, float]:
    """Batch size and window in seconds. Raises TemplateError for what Lambda refuses."""
    size = int(properties.get("BatchSize", usual))
    window = float(properties.get("MaximumBatchingWindowInSeconds", 0))
    if not 1 <= size <= LIMITS["batch"].most:
        raise TemplateError(f"{name}: a batch holds 1 to {LIMITS['batch'].most} records, not {size}")
    if not 0 <= window <= LIMITS["batch window"].most:
        raise TemplateError(f"{name}: a batch is gathered for {LIMITS['batch window'].most} seconds at most")
    return size, window


def _filters(properties: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    import json

    found: Iterator[Any] = iter((properties.get("FilterCriteria") or {}).get("Filters") or [])
    return tuple(json.loads(entry["Pattern"]) for entry in found)


def _partial(properties: dict[str, Any]) -> bool:
    return "ReportBatchItemFailures" in (properties.get("FunctionResponseTypes") or [])


def _stream_source(function: str, name: str, table: str, properties: dict[str, Any]) -> StreamSource:
    size, window = _gathered(name, properties, 100)
    return StreamSource(
        function=function,
        table=table,
        name=name,
        batch_size=size,
        window=window,
        filters=_filters(properties),
        partial=_partial(properties),
        bisect=bool(properties.get("BisectBatchOnFunctionError", False)),
        retries=int(properties.get("MaximumRetryAttempts", -1)),
        max_age=float(properties.get("MaximumRecordAgeInSeconds", -1)),
        on_failure=((properties.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination"),
        starting=str(properties.get("StartingPosition", "TRIM_HORIZON")),
    )


def _queue_source(function: str, name: str, queue: str, properties: dict[str, Any]) -> QueueSource:
    size, window = _gathered(name, properties, 10)
    if size > LIMITS["batch at once"].most and window < 1:
        raise TemplateError(
            f"{name}: more than {LIMITS['batch at once'].most} messages need a MaximumBatchingWindowInSeconds"
        )
    return QueueSource(
        function=function,
        queue=queue,
        name=name,
        batch_size=size,
        window=window,
        filters=_filters(properties),
        partial=_partial(properties),
        concurrency=min(2, int((properties.get("ScalingConfig") or {}).get("MaximumConcurrency", 2))),
    )


def _schedule(function: str, name: str, properties: dict[str, Any], *, scheduler: bool = True) -> Schedule:
    return Schedule(
        function=function,
        name=name,
        scheduler=scheduler,
        expression=str(properties.get("ScheduleExpression") or properties.get("Schedule")),
        payload=properties.get("Input"),
        timezone=str(properties.get("ScheduleExpressionTimezone", "UTC")),
        retries=int((properties.get("RetryPolicy") or {}).get("MaximumRetryAttempts", 185)),
    )
