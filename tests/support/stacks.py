"""Stacks of a template in an emulator's CloudFormation.

Its gateway gets no routes, its Lambda runs nothing of ours, and it knows no alarm over several metrics: those are left out.
"""

import io
import json
import os
import subprocess
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from botocore.config import Config

from factbook.settings import Settings
from factbook.wiring.services import Services
from factbook_local.template import Template
from support import emulators
from support.emulators import Aws
from support.gateway import ROOT
from support.logs import checkpoints_of

TRANSLATOR = ROOT / ".venv-sam" / "bin" / "python"
TOPIC = "arn:aws:sns:us-east-1:000000000000:on-call"
SECONDS = 120
SETTINGS = {
    "facts_table": "FactsTable",
    "log_table": "LogTable",
    "keys_table": "KeysTable",
    "access_table": "AccessTable",
    "blobs_bucket": "BlobsBucket",
    "checkpoints_bucket": "CheckpointsBucket",
}
PATIENT = Config(read_timeout=SECONDS, retries={"total_max_attempts": 1})
"""The emulator makes a stack while it answers; a second request would find that stack there."""
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]


@dataclass
class Deployed:
    """A stack, the parameters it was given, and what it has made, by logical id."""

    aws: Aws
    name: str
    path: Path
    """Of the transformed template."""
    given: dict[str, str]

    @property
    def template(self) -> Template:
        """What the conditions leave of it under the parameters."""
        return _read(self.name, self.path, tuple(self.known.items()))

    @property
    def known(self) -> dict[str, str]:
        """Those of the parameters that this template has."""
        return {name: value for name, value in self.given.items() if name in self.document["Parameters"]}

    @property
    def document(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return read

    @property
    def declared_outputs(self) -> set[str]:
        holds = self.template.resolve
        outputs = self.document["Outputs"].items()
        return {
            name
            for name, each in outputs
            if "Condition" not in each or holds({"Fn::If": [each["Condition"], True, False]})
        }

    @property
    def client(self) -> Any:
        return self.aws.client("cloudformation", PATIENT)

    @property
    def described(self) -> dict[str, Any]:
        (stack,) = self.client.describe_stacks(StackName=self.name)["Stacks"]
        found: dict[str, Any] = stack
        return found

    @property
    def physical(self) -> dict[str, str]:
        found = self.client.describe_stack_resources(StackName=self.name)["StackResources"]
        return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found}

    @property
    def outputs(self) -> dict[str, str]:
        return {each["OutputKey"]: each["OutputValue"] for each in self.described.get("Outputs", [])}

    def wait(self) -> str:
        until = time.monotonic() + SECONDS
        while "PROGRESS" in (status := str(self.described["StackStatus"])):
            assert time.monotonic() < until, status
            time.sleep(0.2)
        return status

    def make(self) -> "Deployed":
        self.client.create_stack(StackName=self.name, **self._asked())
        assert self.wait() == "CREATE_COMPLETE", self.failures()
        return self

    def update(self, path: Path | None = None, **changed: str) -> str:
        """To another template, other parameters or both; how it ended. Raises ClientError when nothing changes."""
        self.path = path or self.path
        self.given = self.given | changed
        self.client.update_stack(StackName=self.name, **self._asked())
        return self.wait()

    def failures(self) -> list[str]:
        events = self.client.describe_stack_events(StackName=self.name)["StackEvents"]
        return [
            f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason')}"
            for each in events
            if each["ResourceStatus"].endswith("FAILED")
        ]

    def _asked(self) -> dict[str, Any]:
        return {
            "TemplateURL": _uploaded(self.aws, self.path),
            "Parameters": [
                {"ParameterKey": name, "ParameterValue": value} for name, value in self.known.items()
            ],
            "Capabilities": CAPABILITIES,
        }


@dataclass
class Cloud:
    """An emulator, and a folder for transformed templates."""

    aws: Aws
    folder: Path
    code: str

    def transformed(self, template: Path = ROOT / "template.yaml") -> Path:
        done = subprocess.run(
            [TRANSLATOR, ROOT / ".ci" / "transform.py", template, self.code],
            capture_output=True,
            text=True,
            env={**os.environ, "AWS_DEFAULT_REGION": "us-east-1"},
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        document["Resources"] = {
            name: each
            for name, each in document["Resources"].items()
            if "Metrics" not in each.get("Properties", {})
        }
        path = self.folder / f"{uuid.uuid4().hex[:8]}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def stack(self, path: Path, **given: str) -> Deployed:
        name = f"fb-{uuid.uuid4().hex[:6]}"
        given = {"AlarmTopicArn": TOPIC, "CheckpointOrigin": f"factbook.{name}", **given}
        return Deployed(self.aws, name, path, given).make()


def settings_of(stack: Deployed) -> Settings:
    names = {field: stack.outputs[output] for field, output in SETTINGS.items()}
    return Settings(
        **names,
        kms_key_id=stack.physical["DataKey"],
        checkpoint_signer=f"kms:{stack.outputs['SigningKeyId']}",
        checkpoint_origin=f"factbook.{stack.name}",
    )


def services_of(stack: Deployed) -> Services:
    made = replace(stack.aws, settings=settings_of(stack)).services()
    made.logs.__dict__["checkpoint_requests"] = checkpoints_of(made.logs)
    return made


@contextmanager
def cloud(folder: Path) -> Iterator[Cloud]:
    """With something at the address of code that is no function."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("app.py", "def lambda_handler(event, context): return {}\n")
    with emulators.ministack() as aws:
        aws.client("s3").create_bucket(Bucket="artefacts")
        aws.client("s3").put_object(Bucket="artefacts", Key="code.zip", Body=packed.getvalue())
        yield Cloud(aws, folder, "s3://artefacts/code.zip")


@lru_cache(maxsize=8)
def _read(name: str, path: Path, given: tuple[tuple[str, str], ...]) -> Template:
    pseudo = {
        "AWS::StackName": name,
        "AWS::Partition": "aws",
        "AWS::Region": "us-east-1",
        "AWS::AccountId": "000000000000",
        "AWS::URLSuffix": "amazonaws.com",
    }
    return Template(path, pseudo, dict(given))


def _uploaded(aws: Aws, path: Path) -> str:
    aws.client("s3").put_object(Bucket="artefacts", Key=path.name, Body=path.read_bytes())
    return f"{aws.endpoint}/artefacts/{path.name}"
