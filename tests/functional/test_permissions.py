"""The template's roles against the SDK calls of the functions themselves: enough, and nothing that is never used."""

import hashlib
import importlib.util
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from botocore.config import Config
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from support import emulators
from support.emulators import Aws
from support.gateway import ROOT, Gateway, load_app
from support.permissions import PASS, Access, CallRecorder, grants_of, refusal
from support.principals import issue, principal
from support.tables import declared

from factbook.settings import Settings
from factbook.wiring.services import Services

FUNCTIONS = ("write", "read", "retrieve", "index", "checkpoint")
FACTS = "/v1/memory/facts"

NEVER_CALLED_HERE = {
    # Lambda's own calls with the function's role.
    "logs:CreateLogStream", "logs:PutLogEvents",
    "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams",
    # Services that are somebody else's here: a search in SQLite, no embeddings, a key in a file.
    "es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut", "es:ESHttpDelete",
    "secretsmanager:GetSecretValue", "kms:Sign", "kms:GetPublicKey",
    "sqs:SendMessage CheckpointDeadLetters.Arn *", "sqs:SendMessage IndexDiscards.Arn *",
    "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
    "dynamodb:BatchGetItem LogTable.Arn *",
    # Without it a missing object is forbidden, not missing.
    "s3:ListBucket",
}  # fmt: skip


def new_signing_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load_function(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"permitted_{name}", ROOT / "functions" / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Story:
    """One tenant's life through all functions, each with clients that are recorded as its own."""

    def __init__(self, aws: Aws, settings: Settings, tenant: str) -> None:
        self.aws, self.settings, self.tenant = aws, settings, tenant
        self.recorders = {name: CallRecorder(self._client, settings) for name in FUNCTIONS}
        self.wired = {name: Services(settings, None, self.recorders[name].client) for name in FUNCTIONS}
        plain = aws.services()
        self.gateway = Gateway(plain, issue(plain, principal(tenant, "root", admin=True)))
        self.reader = self.gateway.as_(issue(plain, principal(tenant, "ann", writes=("p",))))
        self.gateway.apps["retrieve"] = load_app("retrieve")
        for name, app in self.gateway.apps.items():
            app.services = lambda wired=self.wired[name]: wired  # type: ignore[misc]
        self.consumers = {name: load_function(name) for name in ("index", "checkpoint")}
        for name, module in self.consumers.items():
            module.services = lambda wired=self.wired[name]: wired  # type: ignore[attr-defined]
        self.consumers["index"].lambda_handler.services = lambda: self.wired["index"]

    def _client(self, service: str) -> Any:
        if service == "sqs":
            return self.aws.client("sqs")
        return self.aws.client(service, Config(retries={"total_max_attempts": 1}))

    def call(self, method: str, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        reply = self.gateway.call(method, path, body, **more)
        assert reply.status == status, (method, path, reply.text)
        return reply.json if reply.text else None

    def restart(self, name: str) -> None:
        """A new process of a function: nothing is cached."""
        fresh = Services(self.settings, None, self.recorders[name].client)
        self.gateway.apps[name].services = lambda: fresh  # type: ignore[method-assign]

    def tell(self) -> None:
        self.facts()
        self.memories()
        self.uploads()
        self.access()
        self.log()
        self.checkpoints()
        self.index()
        self.retrieval()
        self.removal()
        self.interruptions()

    def facts(self) -> None:
        fact = self.call("POST", FACTS, {"type": "t", "content": "tea", "scope": {"projectId": "p"}}, 201)
        one = f"{FACTS}/{fact['id']}"
        self.call("POST", f"{one}/supersede", {"content": "x" * 70_000})
        self.call("POST", f"{one}/verify", {})
        self.call("POST", f"{FACTS}/batch", {"items": [{"type": "t", "content": "milk"}]})
        for query in ({}, {"version": 1}, {"asOf": fact["createdAt"]}):
            self.call("GET", one, query=query)
        for path, status in (("revisions", 200), ("content", 307), ("provenance", 200)):
            self.call("GET", f"{one}/{path}", status=status)
        first = self.call("GET", FACTS, query={"limit": 1})
        self.call("GET", FACTS, query={"limit": 1, "cursor": first["nextCursor"]})
        assert self.reader.call("GET", FACTS).status == 200
        for caller in (self.gateway, self.reader):
            assert caller.call("GET", FACTS, query={"type": "t"}).status == 200
            assert caller.call("GET", "/v1/memory/types").status == 200
        large = {"type": "t", "content": "x" * 70_000}
        other = self.call("POST", FACTS, large, 201, key="large")
        self.call("POST", FACTS, large, 201, key="large")
        self.call("DELETE", f"{FACTS}/{other['id']}")

    def memories(self) -> None:
        said = {"agent": {"id": "copilot"}, "type": "t", "text": "tea", "key": "k", "reach": "account"}
        person = {"projectId": "p", "participantId": "x"}
        assert self.reader.call("POST", "/v1/memory/remember", {**said, "scope": person}).status == 201
        (review,) = self.call("GET", "/v1/memory/reviews")["data"]
        memory = f"{FACTS}/{review['fact']['id']}"
        self.call("POST", f"{memory}/confirm", {})
        again = {**said, "scope": person, "text": "milk"}
        assert self.reader.call("POST", "/v1/memory/remember", again).status == 200
        self.call("GET", "/v1/memory/agents/copilot/memories")
        self.call("POST", f"{memory}/reject", {})

    def uploads(self) -> None:
        sent = b'"a large payload"'
        asked = {"size": len(sent), "sha256": hashlib.sha256(sent).hexdigest()}
        upload = self.call("POST", "/v1/memory/blobs", asked, 201)
        self.call("POST", FACTS, {"type": "t", "contentRef": upload["contentRef"]}, 400)
        request = urllib.request.Request(upload["uploadUrl"], sent, upload["headers"], method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
        self.call("POST", FACTS, {"type": "t", "contentRef": upload["contentRef"]}, 201)

    def access(self) -> None:
        made = self.call("POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": "bob"}}, 201)
        self.call("GET", "/v1/access/tokens", query={"limit": 1})
        self.call("DELETE", f"/v1/access/tokens/{made['id']}")
        policy = self.call("GET", "/v1/memory/policy")
        self.call("PUT", "/v1/memory/policy", policy)

    def log(self) -> None:
        message = {"kind": "user-message", "payload": {"text": "tea please"}}
        scope = {"projectId": "p", "threadId": "th"}
        run = "/v1/memory/runs/r1/log"
        entries = self.call("POST", run, {"entries": [{**message, "scope": scope}]}, 201)["entries"]
        self.call("POST", run, {"entries": [message, message]}, 201)
        for _ in range(2):  # a replay reads what is there, by key and by place
            self.restart("write")
            self.call("POST", run, {"entries": [message]}, 201, key="again")
            self.call("POST", "/v1/memory/runs/r2/log", {"entries": [message], "afterSequence": -1}, 201)
        self.call("GET", run)
        for caller in (self.gateway, self.reader):
            assert caller.call("GET", "/v1/memory/runs").status == 200
        self.call("GET", f"{run}/verify")
        self.call("GET", f"/v1/memory/log/{entries[0]['id']}")
        self.call("GET", "/v1/memory/threads/th/messages", query={"projectId": "p"})
        cause = entries[0]["id"]
        fact = self.call("POST", FACTS, {"type": "t", "content": "c", "causedByLogId": [cause]}, 201)
        self.call("GET", f"{FACTS}/{fact['id']}/provenance")

    def records(self, table: str, event: str = "INSERT") -> list[dict[str, Any]]:
        image = "OldImage" if event == "REMOVE" else "NewImage"
        items = self.aws.client("dynamodb").scan(TableName=table)["Items"]
        return [
            {
                "eventName": event,
                "eventSourceARN": f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/s",
                "dynamodb": {
                    "Keys": {"pk": item["pk"], "sk": item["sk"]},
                    image: item,
                    "SequenceNumber": str(place),
                },
            }
            for place, item in enumerate(items)
            if item["pk"]["S"].startswith(self.tenant)
        ]

    def checkpoints(self) -> None:
        handler = self.consumers["checkpoint"].lambda_handler
        for _ in range(2):
            assert handler({"Records": self.records(self.settings.log_table)}) == {"batchItemFailures": []}
            handler({"factbook": "tick"})
            self.call("POST", "/v1/memory/runs/r1/log", {"entries": [{"kind": "user-message"}]}, 201)
        self.gateway.call(
            "POST", "/v1/memory/checkpoints"
        )  # the emulator runs no functions: asked, not answered
        for path in ("checkpoints", "checkpoints/latest", "runs/r1/log/proof?sequence=0"):
            name, _, query = path.partition("?")
            self.call("GET", f"/v1/memory/{name}", query={"sequence": 0} if query else None)
        leaves = {"size": self.call("GET", "/v1/memory/checkpoints/latest")["size"]}
        self.gateway.call("GET", "/v1/memory/checkpoints/leaves", query=leaves)

    def index(self) -> None:
        handler = self.consumers["index"].lambda_handler
        self._put_former_fact()
        for command in ("rebuild", "reconcile", "tick"):
            handler({"factbook": command})
        for table in (self.settings.facts_table, self.settings.log_table):
            assert handler({"Records": self.records(table)}) == {"batchItemFailures": []}

    def _put_former_fact(self) -> None:
        """A fact as an earlier version has written it, and no word that all have been looked through."""
        client = self.aws.client("dynamodb")
        client.delete_item(
            TableName=self.settings.access_table, Key={"pk": {"S": "job|upgrade"}, "sk": {"S": "job"}}
        )
        item = client.scan(TableName=self.settings.facts_table, Limit=1)["Items"][0]
        former = {name: value for name, value in item.items() if name not in ("y", "lf", "sj")}
        client.put_item(TableName=self.settings.facts_table, Item=former)

    def retrieval(self) -> None:
        for mode in ("list", "keyword", "both"):
            asked = {"mode": mode} if mode == "list" else {"mode": mode, "query": "tea"}
            for narrowed in (asked, {**asked, "type": "t"}):
                self.call("POST", "/v1/memory/retrieve", narrowed)
                assert self.reader.call("POST", "/v1/memory/retrieve", narrowed).status == 200
        asked = {"mode": "keyword", "query": "tea", "source": "conversations"}
        self.call("POST", "/v1/memory/retrieve", asked)
        turn = {"query": "tea", "agent": "copilot", "intents": [{"scope": "tenant", "mode": "both"}]}
        self.call("POST", "/v1/memory/context", turn)

    def removal(self) -> None:
        handler = self.consumers["index"].lambda_handler
        assert (
            handler({"Records": self.records(self.settings.facts_table, "REMOVE")})["batchItemFailures"] == []
        )
        broken = self.records(self.settings.facts_table)[0]
        broken["dynamodb"]["NewImage"] = {"pk": {"S": "x"}}
        broken["dynamodb"]["Keys"]["sk"] = {"S": "h"}
        handler({"Records": [broken]})

    def interruptions(self) -> None:
        """What only another's write, or a busy store, makes a function ask."""
        self.contended_writes()
        self.contended_upgrade()
        self.busy_reads()

    def contended_writes(self) -> None:
        fact = self.call("POST", FACTS, {"type": "t", "content": "tea"}, 201)
        one, run = f"{FACTS}/{fact['id']}", "/v1/memory/runs/contended/log"
        cancelled, met = _cancelled("TransactionConflict"), _cancelled("ConditionalCheckFailed")
        entry = {"kind": "user-message", "payload": {"text": "tea"}}
        for failures in (
            {"TransactWriteItems": [cancelled]},
            {"TransactWriteItems": [met]},  # which does not say what it met
            {"PutItem": [refusal("TransactionConflictException")]},
            {"PutItem": [refusal("ConditionalCheckFailedException")]},
        ):
            self.interrupt("write", failures)
            self.call("POST", f"{one}/supersede", {"content": "x" * 70_000})
            self.call("POST", run, {"entries": [entry, entry]}, 201)
            self.call("POST", run, {"entries": [entry]}, 201, key=str(failures))
            self.call("POST", FACTS, {"type": "t", "content": "milk"}, 201)
        self.interrupt("write", {"PutItem": [refusal("TransactionConflictException")]})
        self.call("DELETE", one)

    def contended_upgrade(self) -> None:
        for code in ("TransactionConflictException", "ConditionalCheckFailedException"):
            # The job's own put comes first: it is contended as well, and done by the next turn.
            for place in range(3):
                self._put_former_fact()
                self.interrupt("index", {"PutItem": [PASS] * place + [refusal(code)]})
                self.consumers["index"].lambda_handler({"factbook": "tick"})

    def busy_reads(self) -> None:
        for table in (self.settings.facts_table, self.settings.log_table):
            keys = [{"pk": {"S": f"{self.tenant}|none"}, "sk": {"S": "h"}}]
            held_back = {"Responses": {}, "UnprocessedKeys": {table: {"Keys": keys}}}
            self.interrupt("index", {"BatchGetItem": [held_back]})
            self.consumers["index"].lambda_handler({"Records": self.records(table)})

    def interrupt(self, function: str, failures: dict[str, list[Any]]) -> None:
        """The function's next calls are answered so, and only those."""
        self.recorders[function].failures = {name: list(answers) for name, answers in failures.items()}


def _cancelled(reason: str) -> dict[str, Any]:
    return refusal("TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": reason}])


@pytest.fixture(scope="module")
def own() -> Iterator[Aws]:
    """An emulator of its own: these functions walk whole tables, and other tests leave what no function wrote."""
    with emulators.ministack() as aws:
        yield aws


@pytest.fixture(scope="module")
def used(own: Aws, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Access]]:
    """Function → the accesses that its calls needed."""
    folder: Path = tmp_path_factory.mktemp("permissions")
    queue = own.client("sqs").create_queue(QueueName="letters")["QueueUrl"]
    settings = replace(
        own.settings,
        kms_key_id=own.client("kms").create_key()["KeyMetadata"]["KeyId"],
        index_dead_letters=queue,
        search_sqlite=str(folder / "index.db"),
        checkpoint_signer=f"file:{folder}/key",
    )
    (folder / "key").write_bytes(new_signing_key())
    story = Story(own, settings, "permitted")
    story.tell()
    return {name: recorder.seen for name, recorder in story.recorders.items()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_every_call_that_its_function_makes(
    used: dict[str, set[Access]], function: str
) -> None:
    grants = grants_of(declared().template, f"{function.capitalize()}Function")

    assert used[function]
    assert [access for access in used[function] if not any(grant.allows(access) for grant in grants)] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_nothing_that_its_function_never_does(
    used: dict[str, set[Access]], function: str
) -> None:
    grants = grants_of(declared().template, f"{function.capitalize()}Function")
    idle = [grant for grant in grants if not any(grant.allows(access) for access in used[function])]

    assert [str(grant) for grant in idle if NEVER_CALLED_HERE.isdisjoint((grant.action, str(grant)))] == []
