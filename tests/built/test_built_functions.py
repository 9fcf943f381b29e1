"""The functions as `sam build` leaves them, run from their folder and their layers alone.

`make built` makes the build for this machine; without it these tests fail.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factbook_local.template import Template

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".aws-sam" / "host"
DEPLOYED = ROOT / ".aws-sam" / "build"
FUNCTIONS = ("WriteFunction", "ReadFunction", "RetrieveFunction", "IndexFunction", "CheckpointFunction")
BATCHES = ("IndexFunction", "CheckpointFunction")

# A closed revision of a fact, which neither consumer has anything to do with: the answer needs no table.
NO_NEWS = {
    "eventName": "INSERT",
    "eventSourceARN": "arn:aws:dynamodb:eu-central-1:123456789012:table/any/stream/any",
    "dynamodb": {"Keys": {"pk": {"S": "t|f"}, "sk": {"S": "v0000000001"}}, "SequenceNumber": "1"},
}

# Runs in a Python without site-packages; answers are printed last, after what the function logs.
PROGRAM = """
import json, sys
import app, factbook
events = json.load(sys.stdin)
answers = [app.lambda_handler(event, None) for event in events]
print(json.dumps({"app": app.__file__, "layer": factbook.__file__, "answers": answers}))
"""


@pytest.fixture(scope="module")
def template() -> Template:
    pseudo = {
        "AWS::StackName": "factbook",
        "AWS::Partition": "aws",
        "AWS::Region": "eu-central-1",
        "AWS::AccountId": "123456789012",
    }
    return Template(BUILD / "template.yaml", pseudo)


def built_folders(template: Template, name: str) -> Iterator[Path]:
    """Where Lambda would find code: the function's own folder, then each layer's `python`."""
    properties = template.of_type("AWS::Serverless::Function")[name]
    yield BUILD / properties["CodeUri"]
    for layer in properties["Layers"]:
        yield BUILD / template.resources[layer["Ref"]]["Properties"]["ContentUri"] / "python"


def invoke(template: Template, name: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    properties = template.of_type("AWS::Serverless::Function")[name]
    declared = template.resolve(properties["Environment"]["Variables"])
    environment = {
        **{key: str(value) for key, value in declared.items()},
        "PYTHONPATH": os.pathsep.join(map(str, built_folders(template, name))),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }
    done = subprocess.run(
        [sys.executable, "-S", "-s", "-B", "-c", PROGRAM],
        input=json.dumps(events),
        env=environment,
        cwd=BUILD,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def recorded_events(template: Template, name: str) -> list[dict[str, Any]]:
    """The requests of events/ that the gateway would send to this function."""
    declared = template.of_type("AWS::Serverless::Function")[name]["Events"].values()
    routes = {
        f"{event['Properties']['Method']} {event['Properties']['Path']}"
        for event in declared
        if event["Type"] == "HttpApi"
    }
    events = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "events").glob("*.json"))
    ]
    return [event for event in events if event.get("routeKey") in routes]


def without_token(event: dict[str, Any]) -> dict[str, Any]:
    headers = {name: value for name, value in event["headers"].items() if name != "authorization"}
    return {**event, "headers": headers}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_built_function_brings_all_that_it_imports(template: Template, name: str) -> None:
    seen = invoke(template, name, [])

    assert Path(seen["app"]).is_relative_to(BUILD / name)
    assert Path(seen["layer"]).is_relative_to(BUILD / "FactbookLayer")


def test_the_built_service_says_that_it_is_up(template: Template) -> None:
    events = [
        event for event in recorded_events(template, "ReadFunction") if event["routeKey"] == "GET /health"
    ]
    (answer,) = invoke(template, "ReadFunction", events)["answers"]

    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"ok": True})


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in BATCHES])
def test_a_built_function_refuses_every_recorded_request_without_its_token(
    template: Template, name: str
) -> None:
    events = [
        without_token(event)
        for event in recorded_events(template, name)
        if event["routeKey"] != "GET /health"
    ]
    answers = invoke(template, name, events)["answers"]

    assert len(answers) == len(events) > 0
    for event, answer in zip(events, answers, strict=True):
        assert answer["statusCode"] == 401, event["routeKey"]
        assert json.loads(answer["body"])["error"]["code"] == "auth-missing"


@pytest.mark.parametrize("name", BATCHES)
def test_a_built_stream_consumer_answers_a_batch_by_item(template: Template, name: str) -> None:
    (answer,) = invoke(template, name, [{"Records": [NO_NEWS]}])["answers"]

    assert answer == {"batchItemFailures": []}


def test_what_is_deployed_was_built_for_the_runtimes_machine() -> None:
    libraries = [
        path for layer in ("FactbookLayer", "SearchLayer") for path in (DEPLOYED / layer).rglob("*.so*")
    ]
    # e_machine of an ELF header: 183 is AArch64.
    machines = {int.from_bytes(path.read_bytes()[18:20], "little") for path in libraries}
    tags = {path.name.split(".")[1] for path in libraries if ".cpython-" in path.name}

    assert machines == {183}
    assert tags == {"cpython-313-aarch64-linux-gnu"}
