"""Each write route under each fault at each of its storage calls: what it answered, what a retry made of it.

docs/faults.md holds the tables; `python -m support.fault_scenarios` in tests/ writes them again.
"""

import itertools
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from botocore.retries import quota, standard
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from factbook.adapters.policy.dynamodb_policies import DynamoPolicies
from factbook.api import app as api
from factbook.domain import times
from factbook.domain.portability.lines import FORMAT, VERSION
from factbook.domain.strict_json import Json, dump_json
from factbook.ports.deadline import NEVER
from factbook.usecases.log import appending
from factbook.usecases.policy.policies import TRUST_SECONDS, KnownPolicies
from factbook.wiring.services import Services, SystemClock
from support import emulators
from support.emulators import Aws
from support.faults import WORDS_OF_THE_STORE, Fault, Killed, Wire
from support.gateway import ROOT, Gateway, Reply
from support.moved_records import AT, a_fact, a_run
from support.principals import issue, principal
from support.source_world import FakeHandlers, FakeSource, fetched
from support.tables import REGION

DOCUMENT = ROOT / "docs" / "faults.md"
LARGE = "x" * 70_000
UNSURE = {"rate-limit-exceeded": 429, "internal-error": 500, "storage-unavailable": 503}
"""What a fault may be answered with: none of these says that nothing was written."""

Story = list[Any]
Context = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A write: what has to be there first, and the request. `apart`: its parts succeed or fail each on their own."""

    name: str
    send: Callable[[Gateway, Context, str | None], Reply]
    prepare: Callable[[Gateway], Context] = lambda _: {}
    takes_key: bool = True
    apart: bool = False
    struck_at: tuple[str, ...] = ()
    """The steps that are this route's own; the others are struck under another name."""
    look: Callable[["FaultedTenant"], Story] = lambda tenant: tenant.facts()
    retried_after: float = 0
    """Seconds that pass before each next send: what a dead process had taken has run out by then."""


@dataclass(frozen=True)
class Outcome:
    status: int
    story: Story


@dataclass
class Reference:
    """What happens without faults: at the first try, when it is replayed by its key, when it is sent again without."""

    steps: list[str]
    before: Story
    first: Outcome
    replayed: Outcome
    repeated: Outcome


@dataclass(frozen=True)
class Strike:
    """One case: a fault at a step, once or for as long as the SDK tries; the retry with its key or without."""

    step: int
    fault: Fault
    stays: bool
    keyed: bool

    def row(self, scenario: Scenario) -> str:
        """Its row of the table."""
        lasting = "" if self.fault.kills else ", lasting" if self.stays else ", once"
        return f"{self.fault.value}{lasting}{'' if self.keyed or not scenario.takes_key else '; retried without its key'}"


class FaultyService:
    """An emulator; a wire for what is tried on it, and a process that outlives every fault to prepare and look."""

    def __init__(self, aws: Aws) -> None:
        self.wire = Wire(aws)
        client = cache(aws.client)
        self.settings = replace(aws.settings, kms_key_id=client("kms").create_key()["KeyMetadata"]["KeyId"])
        self.calm = Services(self.settings, None, client)
        store = DynamoPolicies(client("dynamodb"), self.settings.access_table)
        # Nobody waits here, so each look at a policy is that of a later moment.
        self.calm.policies = KnownPolicies(store, itertools.count(0, TRUST_SECONDS).__next__)
        self._gateway = Gateway(self.calm)
        self.handlers = FakeHandlers()
        """What mirrored facts come from: every source says `v2`."""
        self.handlers.sources.default_factory = lambda: FakeSource(says=fetched("v2"))

    def calmly(self, token: str) -> Gateway:
        self._gateway.services = self.calm
        return self._gateway.as_(token)

    def in_a_new_process(self, token: str, later: float) -> Gateway:
        """Its functions trust no token yet and hold nothing; their calls go over the wire. It runs so many seconds later."""
        services = Services(self.settings, _Later(later), self.wire.client)
        services.sources.__dict__["handlers"] = self.handlers
        self._gateway.services = services
        return self._gateway.as_(token)


class _Later(SystemClock):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> str:
        return times.add(super().now(), seconds=self._seconds)


@dataclass
class FaultedTenant:
    """One tenant, and what a reader can see of it. Each request is served by a new process."""

    faulty: FaultyService
    scenario: Scenario
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        self._tenant = tenant = f"tenant-{uuid.uuid4()}"
        self._admin = issue(self.faulty.calm, principal(tenant, "admin", admin=True))
        self._reader = issue(self.faulty.calm, principal(tenant, "reader", "service"))
        self._sends = 0
        self._boss = issue(self.faulty.calm, principal(tenant, "boss", admin=True))
        self.faulty.wire.reset()
        self.context = self.scenario.prepare(self.faulty.calmly(self._admin))

    def clear(self) -> None:
        """Remove what the tenant has: an emulator's queries grow with all it holds."""
        for table in get_backend("dynamodb")[DEFAULT_ACCOUNT_ID][REGION].tables.values():
            for partition in [each for each in table.items if str(each).startswith(self._tenant)]:
                del table.items[partition]

    def send(self, key: str | None) -> Reply:
        later = self._sends * self.scenario.retried_after
        self._sends += 1
        return self.scenario.send(self.faulty.in_a_new_process(self._admin, later), self.context, key)

    @property
    def reader(self) -> Gateway:
        """Reads what is the whole tenant's, from few partitions."""
        return self.faulty.calmly(self._reader)

    @property
    def admin(self) -> Gateway:
        return self.faulty.calmly(self._admin)

    def story(self) -> Story:
        """What a reader sees, without ids and times; raises AssertionError for what does not hold together."""
        return self.scenario.look(self)

    def facts(self) -> Story:
        reader = self.reader
        listed = _page(reader, "/v1/memory/facts")
        for fact in listed:
            assert reader.call("GET", f"/v1/memory/facts/{fact['id']}").json == fact
        ids = {fact["id"] for fact in listed} | set(self.context.get("ids", ()))
        return sorted((self._life(reader, fact_id) for fact_id in ids), key=repr)

    def holds(self) -> Story:
        """The facts, which of them are held, and what the run of holds tells of them."""
        held = ["legalHold" in fact.get("retention", {}) for fact in _page(self.reader, "/v1/memory/facts")]
        admin = self.admin
        answer = admin.call("GET", "/v1/memory/runs/_holds/log")
        told = [entry["payload"]["action"] for entry in answer.json["data"]] if answer.status == 200 else []
        assert not told or admin.call("GET", "/v1/memory/runs/_holds/log/verify").json["holds"] is True
        return [self.facts(), held, told]

    def mirrored(self) -> Story:
        """The facts, and whether each is stale by its stated time."""
        reader = self.reader
        listed = _page(reader, "/v1/memory/facts")
        return [self.facts(), sorted(str(fact.get("staleReason")) for fact in listed)]

    def memories(self) -> Story:
        """All lives of the memories, and the standing sets of their owner and of another administrator."""
        admin, boss = self.admin, self.faulty.calmly(self._boss)
        ids = {review["fact"]["id"] for review in _page(admin, "/v1/memory/reviews")}
        ids |= {fact["id"] for fact in _page(admin, "/v1/memory/facts")} | set(self.context.get("ids", ()))
        owner = admin.as_(self.context["ann"]) if "ann" in self.context else admin
        lives = sorted((self._life(admin, fact_id) for fact_id in ids), key=repr)
        # The calm gateway serves one token at a time.
        return [lives, _standing(self.faulty.calmly(owner.token)), _standing(self.faulty.calmly(boss.token))]

    def _life(self, reader: Gateway, fact_id: str) -> list[Any]:
        revisions = reader.call("GET", f"/v1/memory/facts/{fact_id}/revisions").json["data"]
        life = list(reversed(revisions))
        assert [fact["version"] for fact in life] == list(range(1, len(life) + 1))
        for earlier, later in itertools.pairwise(life):
            assert (earlier["invalidatedAt"] == later["updatedAt"]) is (
                earlier["invalidationReason"] == "superseded"
            )
            assert later["supersedes"] == earlier["revisionId"]
        for fact in life:
            if "contentRef" in fact:
                bucket, _, key = fact["contentRef"].removeprefix("blob://s3/").partition("/")
                assert self.faulty.calm._client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"]
        return [
            [fact["contentHash"], fact["trust"], fact.get("invalidationReason"), fact.get("verifiedBy")]
            for fact in life
        ]


def _standing(reader: Gateway) -> list[Any]:
    answer = reader.call("GET", "/v1/memory/agents/copilot/memories").json
    return [[fact["content"]["text"], fact["reach"], fact["version"]] for fact in answer["data"]]


def _page(reader: Gateway, path: str) -> list[Any]:
    answer = reader.call("GET", path, query={"limit": 100}).json
    assert answer["hasMore"] is False
    found: list[Any] = answer["data"]
    return found


def reference(faulty: FaultyService, scenario: Scenario) -> Reference:
    one, other = FaultedTenant(faulty, scenario), FaultedTenant(faulty, scenario)
    before = one.story()
    faulty.wire.reset()
    key = str(uuid.uuid4())
    first = one.send(key).status
    assert first < 300
    steps = list(faulty.wire.calls)
    applied = one.story()
    replayed = Outcome(one.send(key).status, one.story())
    other.send(None)
    repeated = Outcome(other.send(None).status, other.story())
    return Reference(steps, before, Outcome(first, applied), replayed, repeated)


def table(faulty: FaultyService, scenario: Scenario) -> str:
    """The scenario's section of docs/faults.md, by trying every case. Raises AssertionError for the first bad one."""
    known = reference(faulty, scenario)
    rows: dict[str, dict[int, str]] = {}
    for strike in strikes(scenario, known):
        row = strike.row(scenario)
        try:
            rows.setdefault(row, {})[strike.step] = suffer(faulty, scenario, known, strike)
        except AssertionError as error:
            raise AssertionError(f"{scenario.name}: {known.steps[strike.step]}: {row}: {error}") from error
    steps = sorted({step for row in rows.values() for step in row})
    lines = [f"### {scenario.name}", ""]
    lines += [
        f"| | {' | '.join(f'`{known.steps[step]}`' for step in steps)} |",
        "|---" * (len(steps) + 1) + "|",
    ]
    for row, cells in rows.items():
        lines.append(f"| {row} | {' | '.join(cells.get(step, '') for step in steps)} |")
    return "\n".join(lines) + "\n"


def strikes(scenario: Scenario, known: Reference) -> Iterator[Strike]:
    """Each fault at each step once, and for as long as the SDK tries. A retry without its key is told apart only by
    whether the first try landed, so three faults show it.
    """
    for step, name in enumerate(known.steps):
        if name in known.steps[:step] or (scenario.struck_at and name not in scenario.struck_at):
            continue
        for fault in Fault:
            if not fault.may_strike(name):
                continue
            if not fault.kills:
                yield Strike(step, fault, stays=False, keyed=scenario.takes_key)
            yield Strike(step, fault, stays=True, keyed=scenario.takes_key)
            if scenario.takes_key and fault in (Fault.THROTTLED, Fault.LOST_REPLY, Fault.KILLED_AFTER):
                yield Strike(step, fault, stays=True, keyed=False)


def suffer(faulty: FaultyService, scenario: Scenario, known: Reference, strike: Strike) -> str:
    """Strike, look, retry, look again; the outcome in words. Raises AssertionError for anything untrue or torn."""
    tenant = FaultedTenant(faulty, scenario)
    try:
        return _suffer(tenant, known, strike)
    finally:
        tenant.clear()


def _suffer(tenant: FaultedTenant, known: Reference, strike: Strike) -> str:
    faulty, scenario = tenant.faulty, tenant.scenario
    key = str(uuid.uuid4()) if strike.keyed else None
    faulty.wire.reset(strike.fault, known.steps[strike.step], stays=strike.stays)
    try:
        answer: Reply | None = tenant.send(key)
    except Killed:
        answer = None
    assert (answer is None) == strike.fault.kills
    faulty.wire.reset()
    story = tenant.story()
    if scenario.apart:
        _require_whole_parts(answer, known, story)
    else:
        _require_truth(answer, known, story)
    if answer is not None and answer.status == known.first.status and not _refused_parts(answer):
        again = tenant.send(key).status
        _require_same(Outcome(again, tenant.story()), known.replayed if strike.keyed else known.repeated)
        return str(answer.status)
    landed = story == known.first.story
    told = "–" if answer is None else str(answer.status)
    if answer is not None and _refused_parts(answer):
        told += f" ({max(part['status'] for part in answer.json['results'])} in a part)"
    again = tenant.send(key).status
    after = Outcome(again, tenant.story())
    if scenario.apart and not strike.keyed:
        _require_all_parts(after, known)
    elif landed:
        _require_same(after, known.replayed if strike.keyed else known.repeated)
    else:
        _require_same(after, known.first)
    if scenario.apart and answer is None:
        return f"{told} → {again}"  # which parts landed is a matter of moments
    return f"{told}{', landed' if landed else ''} → {again}"


def _require_truth(answer: Reply | None, known: Reference, story: Story) -> None:
    assert story in (known.before, known.first.story), "the write is torn"
    if answer is None:
        return
    if answer.status < 400:
        assert (answer.status, story) == (known.first.status, known.first.story), "acknowledged, not there"
        return
    assert answer.status == UNSURE[answer.code]
    _require_clean(answer)


def _require_clean(answer: Reply) -> None:
    assert not [word for word in WORDS_OF_THE_STORE if word in answer.text]
    assert ("Retry-After" in answer.headers) == (answer.status in (429, 503))
    assert set(answer.json["error"]) == {"code", "message", "requestId"}


def _refused_parts(answer: Reply) -> bool:
    return '"results"' in answer.text and any(part["status"] != 201 for part in answer.json["results"])


def _require_whole_parts(answer: Reply | None, known: Reference, story: Story) -> None:
    """Each part of a batch is there or not; each that was acknowledged is."""
    assert all(part in known.first.story for part in story)
    if answer is None:
        return
    if "error" in answer.json:  # before the first part
        assert answer.status == UNSURE[answer.code]
        assert story == known.before
        _require_clean(answer)
        return
    for part in answer.json["results"]:
        if part["status"] == 201:
            assert any(life[0][0] == part["fact"]["contentHash"] for life in story)
        else:
            assert part["status"] == UNSURE[part["error"]["code"]]
    assert not [word for word in WORDS_OF_THE_STORE if word in answer.text]


def _require_all_parts(after: Outcome, known: Reference) -> None:
    """Sent again without its key, a batch writes every part once more; none is missing."""
    assert after.status == known.first.status
    assert all(part in after.story for part in known.first.story)
    assert all(part in known.first.story for part in after.story)


def _require_same(found: Outcome, wanted: Outcome) -> None:
    assert found == wanted


def _fact(gateway: Gateway, content: Any = "v1", **fields: Any) -> Context:
    fact = gateway.call("POST", "/v1/memory/facts", {"type": "note", "content": content, **fields}).json
    return {"id": fact["id"], "ids": [fact["id"]]}


def _mirrored(content: str) -> Callable[[Gateway], Context]:
    """A fact of that content that was last seen to agree with its source long ago. Its host is nobody else's: a process that
    was killed has a place there for a while.
    """

    def prepare(gateway: Gateway) -> Context:
        source = {
            "kind": "http-api",
            "uri": f"https://{uuid.uuid4().hex}.example/price",
            "freshness": {"ttlSeconds": 3600, "lastVerifiedAt": "2026-01-01T00:00:00Z"},
            "refresh": {"strategy": "manual"},
        }
        return _fact(gateway, content, source=source)

    return prepare


def _keyed_fact(gateway: Gateway) -> Context:
    return _fact(gateway, key="k")


def _held(gateway: Gateway) -> Context:
    made = _fact(gateway)
    assert gateway.call("POST", f"{FACT}/hold".format(**made), WHY).status == 200
    return made


def _deleted_key(gateway: Gateway) -> Context:
    made = _keyed_fact(gateway)
    assert gateway.call("DELETE", FACT.format(**made)).status == 200
    return made


def _expired_key(gateway: Gateway) -> Context:
    """Its head is still there. No reader sees anything of it, so the story begins without."""
    made = _keyed_fact(gateway)
    tenant = gateway.call("GET", "/v1/identity/whoami").json["tenantId"]
    facts = gateway.services.memory.facts
    head = facts.head(tenant, made["id"])
    assert head is not None
    over = head.fact.model_copy(update={"expires_at": head.fact.updated_at})
    assert facts.amend(head, head.followed_by(over, head.marks[0])) is None
    return {}


def _memory(gateway: Gateway) -> Context:
    """What ann, who is no administrator, stated about the account."""
    token = gateway.call("POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": "ann"}}).json["token"]
    made = gateway.as_(token).call("POST", REMEMBER, STATED | {"reach": "account"})
    assert made.status == 201, made.text
    return {"ann": token, "id": made.json["id"], "ids": [made.json["id"]]}


def _confirmed(gateway: Gateway) -> Context:
    made = _memory(gateway)
    assert gateway.call("POST", f"{FACT}/confirm".format(**made), {}).status == 200
    return made


def _proposed_again(gateway: Gateway) -> Context:
    made = _confirmed(gateway)
    assert gateway.as_(made["ann"]).call("POST", REMEMBER, STATED | {"text": "We sell cars."}).status == 200
    return made


def _remembers(**said: Any) -> Callable[[Gateway, Context, str | None], Reply]:
    def send(gateway: Gateway, context: Context, key: str | None) -> Reply:
        who = gateway.as_(context["ann"]) if "ann" in context else gateway
        return who.call("POST", REMEMBER, STATED | said, key=key)

    return send


def _tokens(tenant: FaultedTenant) -> Story:
    tokens = _page(tenant.admin, "/v1/access/tokens")
    return sorted([token["actor"]["id"], "revokedAt" in token] for token in tokens)


def _policy(tenant: FaultedTenant) -> Story:
    return [tenant.admin.call("GET", "/v1/memory/policy").json]


def _run(tenant: FaultedTenant) -> Story:
    """The run's entries, which the server finds whole."""
    answer = tenant.admin.call("GET", f"{RUN}/log")
    if answer.status == 404:
        return []
    assert tenant.admin.call("GET", f"{RUN}/log/verify").json["holds"] is True
    entries = answer.json["data"]
    assert [entry["sequence"] for entry in entries] == list(range(len(entries)))
    return [[entry["kind"], entry["payload"], entry["scope"].get("userId")] for entry in entries]


def _begun_run(gateway: Gateway) -> Context:
    answer = gateway.call("POST", f"{RUN}/log", {"entries": [MESSAGE]})
    assert answer.status == 201
    return {}


def _token(gateway: Gateway) -> Context:
    body = {"actor": {"kind": "service", "id": "robot"}}
    return {"token": gateway.call("POST", "/v1/access/tokens", body).json["id"]}


def _begun_import(records: Callable[[str], list[Json]]) -> Callable[[Gateway], Context]:
    """An import of some records of the tenant, of which none is in."""

    def prepare(gateway: Gateway) -> Context:
        tenant = gateway.call("GET", "/v1/identity/whoami").json["tenantId"]
        header = {"format": FORMAT, "version": VERSION, "tenant": tenant, "exportedAt": AT, "leaves": 0}
        lines = [{"header": header}, *records(tenant)]
        assert _import(gateway, lines[:1]).status == 200
        return {"lines": lines}

    return prepare


def _import(gateway: Gateway, lines: list[Json], **at: str) -> Reply:
    body = "".join(f"{dump_json(line)}\n" for line in lines)
    return gateway.call("POST", "/v1/memory/import", raw=body, query={"file": "0" * 32, **at})


def _imports(gateway: Gateway, context: Context, _: str | None) -> Reply:
    return _import(gateway, context["lines"], at="0")


def _posts(path: str, body: Any) -> Callable[[Gateway, Context, str | None], Reply]:
    def send(gateway: Gateway, context: Context, key: str | None) -> Reply:
        return gateway.call("POST", path.format(**context), body, key=key)

    return send


def _deletes(path: str, **query: Any) -> Callable[[Gateway, Context, str | None], Reply]:
    def send(gateway: Gateway, context: Context, key: str | None) -> Reply:
        return gateway.call("DELETE", path.format(**context), query=query)

    return send


FACT, NOTE = "/v1/memory/facts/{id}", {"type": "note", "content": "v1"}
WHY = {"reason": "Case 7"}
KEYED = NOTE | {"key": "k", "content": "v2"}
REMEMBER = "/v1/memory/remember"
STATED = {"agent": {"id": "copilot"}, "type": "memory", "key": "business", "text": "We sell parts."}
RUN = "/v1/memory/runs/r1"
MESSAGE = {"kind": "user-message", "scope": {}, "payload": {"text": "hello"}}
SEALED = MESSAGE | {"scope": {"userId": "admin"}}
ROBOT = {"actor": {"kind": "service", "id": "robot"}}
HEAD, CHANGE, BLOB = "GetItem facts", "TransactWriteItems facts", "PutObject blobs"
CLAIM = "DeleteObjectTagging blobs"
NEW, TOKEN = "PutItem facts", "PutItem access"
LEASE = TOKEN
STANDING = "Query facts"
LOGGED = "TransactWriteItems facts log"
TAIL, ENTRY = "Query log", "PutItem log"
SCENARIOS = [
    Scenario("POST /v1/memory/facts", _posts("/v1/memory/facts", NOTE)),
    Scenario(
        "POST /v1/memory/facts, 70 KB",
        _posts("/v1/memory/facts", NOTE | {"content": LARGE}),
        struck_at=(BLOB, NEW, CLAIM),
    ),
    Scenario("POST /v1/memory/facts, a new key", _posts("/v1/memory/facts", KEYED), struck_at=(NEW,)),
    Scenario(
        "POST /v1/memory/facts, a key with onExisting",
        _posts("/v1/memory/facts", KEYED | {"onExisting": "supersede"}),
        _keyed_fact,
        struck_at=(HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts, the key of a deleted fact",
        _posts("/v1/memory/facts", KEYED),
        _deleted_key,
        struck_at=(NEW, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts, the key of an expired fact",
        _posts("/v1/memory/facts", KEYED | {"onExisting": "supersede"}),
        _expired_key,
        struck_at=(HEAD, NEW),
    ),
    Scenario(
        "POST /v1/memory/facts/batch",
        _posts("/v1/memory/facts/batch", {"items": [NOTE, NOTE | {"content": "v2"}]}),
        apart=True,
        struck_at=(NEW,),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/supersede",
        _posts(f"{FACT}/supersede", {"content": "v2"}),
        _fact,
        struck_at=(HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/supersede, expectVersion",
        _posts(f"{FACT}/supersede", {"content": "v2", "expectVersion": 1}),
        _fact,
        struck_at=(CHANGE,),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/supersede, 70 KB",
        _posts(f"{FACT}/supersede", {"content": LARGE}),
        _fact,
        struck_at=(BLOB, CHANGE, CLAIM),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/verify", _posts(f"{FACT}/verify", {}), _fact, struck_at=(HEAD, CHANGE)
    ),
    Scenario("DELETE /v1/memory/facts/{id}", _deletes(FACT), _fact, takes_key=False, struck_at=(HEAD, NEW)),
    Scenario(
        "DELETE /v1/memory/facts/{id}, expectVersion",
        _deletes(FACT, expectVersion=1),
        _fact,
        takes_key=False,
        struck_at=(NEW,),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/hold",
        _posts(f"{FACT}/hold", WHY),
        _fact,
        look=FaultedTenant.holds,
        struck_at=(HEAD, TAIL, LOGGED),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/release",
        _posts(f"{FACT}/release", WHY),
        _held,
        look=FaultedTenant.holds,
        struck_at=(HEAD, TAIL, LOGGED),
    ),
    Scenario(
        "POST /v1/memory/remember", _remembers(), look=FaultedTenant.memories, struck_at=(STANDING, NEW)
    ),
    Scenario(
        "POST /v1/memory/remember, over a confirmed memory",
        _remembers(text="We sell cars."),
        _confirmed,
        look=FaultedTenant.memories,
        struck_at=(STANDING, HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/confirm",
        _posts(f"{FACT}/confirm", {}),
        _memory,
        look=FaultedTenant.memories,
        struck_at=(STANDING, HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/confirm, over a confirmed memory",
        _posts(f"{FACT}/confirm", {}),
        _proposed_again,
        look=FaultedTenant.memories,
        struck_at=(HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/reject",
        _posts(f"{FACT}/reject", {}),
        _memory,
        look=FaultedTenant.memories,
        struck_at=(HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/reject, over a confirmed memory",
        _posts(f"{FACT}/reject", {}),
        _proposed_again,
        look=FaultedTenant.memories,
        struck_at=(HEAD, CHANGE),
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/refresh, unchanged",
        _posts(f"{FACT}/refresh", {}),
        _mirrored("v2"),
        takes_key=False,
        struck_at=(LEASE, HEAD, NEW, "DeleteItem access"),
        look=FaultedTenant.mirrored,
        retried_after=31,
    ),
    Scenario(
        "POST /v1/memory/facts/{id}/refresh, changed",
        _posts(f"{FACT}/refresh", {}),
        _mirrored("v1"),
        takes_key=False,
        struck_at=(TAIL, "TransactWriteItems facts log"),
        look=FaultedTenant.mirrored,
        retried_after=31,
    ),
    Scenario(
        "DELETE /v1/memory/facts/{id}, of a proposal over a confirmed memory",
        _deletes(FACT),
        _proposed_again,
        takes_key=False,
        look=FaultedTenant.memories,
        struck_at=(HEAD, CHANGE),
    ),
    Scenario("POST /v1/access/tokens", _posts("/v1/access/tokens", ROBOT), look=_tokens, struck_at=(TOKEN,)),
    Scenario(
        "DELETE /v1/access/tokens/{id}",
        _deletes("/v1/access/tokens/{token}"),
        _token,
        takes_key=False,
        look=_tokens,
        struck_at=(TOKEN,),
    ),
    Scenario(
        "PUT /v1/memory/policy",
        lambda gateway, _, __: gateway.call("PUT", "/v1/memory/policy", {"retention": {"keepDays": 700}}),
        takes_key=False,
        look=_policy,
        struck_at=(TOKEN,),
    ),
    Scenario(
        "POST /v1/memory/runs/{runId}/log, a new run",
        _posts(f"{RUN}/log", {"entries": [MESSAGE]}),
        look=_run,
        struck_at=(TAIL, ENTRY),
    ),
    Scenario(
        "POST /v1/memory/runs/{runId}/log, afterSequence",
        _posts(f"{RUN}/log", {"entries": [MESSAGE | {"payload": 2}], "afterSequence": 0}),
        _begun_run,
        look=_run,
        struck_at=(ENTRY,),
    ),
    Scenario(
        "POST /v1/memory/runs/{runId}/log, three at once",
        _posts(f"{RUN}/log", {"entries": [MESSAGE | {"payload": n} for n in (2, 3, 4)]}),
        _begun_run,
        look=_run,
        struck_at=("TransactWriteItems log",),
    ),
    Scenario(
        "POST /v1/memory/runs/{runId}/log, sealed",
        _posts(f"{RUN}/log", {"entries": [SEALED]}),
        look=_run,
        struck_at=("Query keys", "GenerateDataKey kms", "PutItem keys", ENTRY),
    ),
    Scenario(
        "POST /v1/memory/import, a fact",
        _imports,
        _begun_import(a_fact),
        takes_key=False,
        struck_at=("BatchGetItem facts", CHANGE, TOKEN),
    ),
    Scenario(
        "POST /v1/memory/import, a run",
        _imports,
        _begun_import(a_run),
        takes_key=False,
        look=_run,
        struck_at=("BatchGetItem log", "GetItem log", TAIL, "TransactWriteItems log", TOKEN),
    ),
]


@contextmanager
def impatient() -> Iterator[None]:
    """The SDK and the use cases retry at once, and as often as they are told, however slow this machine is.

    An append gives up after a few tries; in the service it is the request's deadline that ends its 200.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "deadline_of", lambda *_: NEVER)
        patch.setattr(appending, "ATTEMPTS", 5)
        patch.setattr(standard.ExponentialBackoff, "delay_amount", lambda *_: 0)
        patch.setattr(quota.RetryQuota, "acquire", lambda *_: True)
        patch.setattr("time.sleep", lambda _: None)
        yield


def sections(text: str) -> dict[str, str]:
    """The tables of docs/faults.md by their scenario's name."""
    parts = re.split(r"^(?=### )", text, flags=re.MULTILINE)
    return {part.partition("\n")[0].removeprefix("### "): part.rstrip() + "\n" for part in parts[1:]}


def main() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    with emulators.moto() as aws, impatient():
        faulty = FaultyService(aws)
        tables = [table(faulty, scenario) for scenario in SCENARIOS]
    intro = re.split(r"^### ", text, maxsplit=1, flags=re.MULTILINE)[0]
    DOCUMENT.write_text(intro + "\n".join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
