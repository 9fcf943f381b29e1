"""Legal holds: who puts one on, what it stops, what it leaves in the log, and what a fact is once it is released."""

import itertools
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.emulators import Aws
from support.fakes import FakeClock
from support.gateway import Gateway, Reply
from support.principals import TenantService
from support.sdk_calls import Calls, put_units, recorded

from factbook.adapters.dynamodb.client import Item, from_item, to_item
from factbook.domain import times
from factbook.usecases.policy.policies import KnownPolicies

FACTS, REMEMBER, POLICY = "/v1/memory/facts", "/v1/memory/remember", "/v1/memory/policy"
NOTE: dict[str, Any] = {"type": "note", "content": "v1"}
WHY = {"reason": "Case 2026-114"}
START = "2026-01-01T00:00:00.000Z"
NEVER = str(uuid.UUID(int=7))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def service(ministack: Aws, tenant: str, clock: FakeClock) -> TenantService:
    services = ministack.services(clock)
    services.policies = KnownPolicies(services.policies, itertools.count(0, 10).__next__)
    return TenantService(services, tenant)


@pytest.fixture
def table(service: TenantService, ministack: Aws) -> "Table":
    return Table(ministack, service.tenant)


class Table:
    def __init__(self, aws: Aws, tenant: str) -> None:
        self._client, self._name, self._tenant = aws.client("dynamodb"), aws.settings.facts_table, tenant

    def item(self, fact_id: str, sk: str = "h") -> Item:
        where = to_item({"pk": f"{self._tenant}|{fact_id}", "sk": sk})
        return from_item(self._client.get_item(TableName=self._name, Key=where)["Item"])

    def held(self) -> list[Item]:
        pages = [
            self._client.query(
                TableName=self._name,
                IndexName="held",
                KeyConditionExpression="hd = :hd",
                ExpressionAttributeValues=to_item({":hd": f"{self._tenant}|{shard}"}),
            )["Items"]
            for shard in range(4)
        ]
        return [from_item(item) for page in pages for item in page]


def write(caller: Gateway, **fields: Any) -> str:
    reply = caller.call("POST", FACTS, NOTE | fields)
    assert reply.status == 201, reply.text
    return str(reply.json["id"])


def hold(caller: Gateway, fact: str, word: str = "hold", key: str | None = None, **fields: Any) -> Reply:
    return caller.call("POST", f"{FACTS}/{fact}/{word}", WHY | fields, key=key)


def done(reply: Reply) -> Any:
    assert reply.status == 200, reply.text
    return reply.json


def refused(reply: Reply, status: int, code: str, fact: str | None) -> None:
    assert (reply.status, reply.code) == (status, code), reply.text
    assert reply.json["error"].get("details", {}).get("factId") == fact


def entries(admin: Gateway) -> list[Any]:
    """Of the run of holds, which the server finds whole."""
    reply = admin.call("GET", "/v1/memory/runs/_holds/log", query={"limit": 100})
    if reply.status == 404:
        return []
    assert admin.call("GET", "/v1/memory/runs/_holds/log/verify").json["holds"] is True
    return list(reply.json["data"])


def test_a_hold_and_its_release_change_the_fact_in_place_and_each_leaves_an_entry(
    service: TenantService,
) -> None:
    admin = service.admin
    written = admin.call("POST", FACTS, NOTE | {"retention": {"keepDays": 30}}).json
    fact = written["id"]

    held = done(hold(admin, fact))
    assert held == {k: v for k, v in written.items() if k != "expiresAt"} | {
        "retention": {"keepDays": 30, "legalHold": True}
    }
    assert done(admin.call("GET", f"{FACTS}/{fact}")) == held
    assert done(hold(admin, fact, "release", reason="Case closed")) == written
    assert done(admin.call("GET", f"{FACTS}/{fact}")) == written
    assert len(done(admin.call("GET", f"{FACTS}/{fact}/revisions"))["data"]) == 1

    first, second = entries(admin)
    said = {"factId": fact, "version": 1, "by": "user:admin"}
    assert first["payload"] == said | {"action": "hold", "reason": "Case 2026-114"}
    assert second["payload"] == said | {"action": "release", "reason": "Case closed"}
    for entry in (first, second):
        assert (entry["kind"], entry["actor"]) == ("event-emitted", "user:admin")
        assert entry["scope"] == {"tenantId": service.tenant}


def test_what_is_so_already_is_answered_and_nothing_is_recorded(service: TenantService) -> None:
    admin = service.admin
    fact = write(admin)
    assert "retention" not in done(hold(admin, fact, "release"))
    held = done(hold(admin, fact))
    assert done(hold(admin, fact, reason="Another case")) == held
    done(hold(admin, fact, "release"))
    assert "retention" not in done(hold(admin, fact, "release"))
    assert [entry["payload"]["action"] for entry in entries(admin)] == ["hold", "release"]


@pytest.mark.parametrize("word", ["hold", "release"])
def test_only_administrators_hold_and_release_and_who_may_not_see_a_fact_does_not_find_it(
    service: TenantService, word: str
) -> None:
    admin, fact = service.admin, write(service.admin, scope={"projectId": "p"})
    done(hold(admin, fact)) if word == "release" else None
    for caller, status, code in (
        (service.of("bob", writes=["p"]), 403, "permission-denied"),
        (service.of("bob", reads=["p"]), 403, "permission-denied"),
        (service.of("bot", "agent", admin=True), 403, "permission-denied"),
        (service.of("bob"), 404, "fact-not-found"),
    ):
        refused(hold(caller, fact, word), status, code, fact)
    refused(hold(admin, NEVER, word), 404, "fact-not-found", NEVER)
    assert admin.call("GET", f"{FACTS}/{fact}").json.get("retention") == (
        {"legalHold": True} if word == "release" else None
    )
    assert len(entries(admin)) == (1 if word == "release" else 0)
    done(hold(service.of("eve", "service", admin=True), fact, word))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": "x" * 1_001},
        {"reason": None},
        {"reason": 1},
        WHY | {"expectVersion": 0},
    ],
    ids=str,
)
def test_a_hold_needs_a_reason_of_at_most_a_thousand_characters(service: TenantService, body: Any) -> None:
    fact = write(service.admin)
    for word in ("hold", "release"):
        reply = service.admin.call("POST", f"{FACTS}/{fact}/{word}", body)
        assert (reply.status, reply.code) == (
            400,
            "validation-failed" if body.get("reason", 1) else "bad-input",
        ), reply.text
    assert entries(service.admin) == []
    done(hold(service.admin, fact, reason="x" * 1_000))


def test_a_hold_of_another_version_than_was_looked_at_is_refused(service: TenantService) -> None:
    admin, fact = service.admin, write(service.admin)
    done(admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": "v2"}))
    reply = hold(admin, fact, expectVersion=1)
    refused(reply, 409, "fact-changed", fact)
    assert reply.json["error"]["details"]["currentVersion"] == 2
    done(hold(admin, fact, expectVersion=2))
    refused(hold(admin, fact, expectVersion=1), 409, "fact-changed", fact)
    refused(hold(admin, fact, "release", expectVersion=1), 409, "fact-changed", fact)
    assert len(entries(admin)) == 1


def test_a_deleted_fact_is_not_found_and_a_hold_does_not_bring_it_back(service: TenantService) -> None:
    fact = write(service.admin)
    done(service.admin.call("DELETE", f"{FACTS}/{fact}"))
    refused(hold(service.admin, fact), 404, "fact-not-found", fact)
    assert entries(service.admin) == []


# -- what a hold stops


def changes(fact: str) -> dict[str, tuple[str, str, Any]]:
    """Every route that changes a fact, whatever it changes."""
    one = f"{FACTS}/{fact}"
    return {
        "supersede": ("POST", f"{one}/supersede", {"content": "v2"}),
        "supersede of fields": ("POST", f"{one}/supersede", {"validUntil": "2027-01-01T00:00:00Z"}),
        "supersede of the retention": ("POST", f"{one}/supersede", {"retention": {"keepDays": 1}}),
        "supersede that takes the hold off": ("POST", f"{one}/supersede", {"clear": ["retention"]}),
        "verify": ("POST", f"{one}/verify", {}),
        "confirm": ("POST", f"{one}/confirm", {}),
        "reject": ("POST", f"{one}/reject", {}),
        "delete": ("DELETE", one, None),
        "keyed": ("POST", FACTS, NOTE | {"key": "k", "content": "v2", "onExisting": "supersede"}),
    }


@pytest.mark.parametrize("name", changes(NEVER))
def test_a_held_fact_takes_no_change_and_says_which_fact_that_is(service: TenantService, name: str) -> None:
    admin = service.admin
    fact = write(admin, key="k")
    held = done(hold(admin, fact))
    method, path, body = changes(fact)[name]
    refused(admin.call(method, path, body), 409, "legal-hold", fact)
    if method == "POST":  # the hold comes before the version
        versioned = admin.call(method, path, body | {"expectVersion": 9})
        assert versioned.code in ("legal-hold", "unknown-field")
    assert done(admin.call("GET", f"{FACTS}/{fact}")) == held
    batch = {"items": [NOTE | {"key": "k", "content": "v2", "onExisting": "supersede"}, NOTE]}
    first, second = done(admin.call("POST", f"{FACTS}/batch", batch))["results"]
    assert (first["status"], first["error"]["code"], second["status"]) == (409, "legal-hold", 201)


def test_a_hold_that_a_write_set_is_released_by_the_route_alone(service: TenantService) -> None:
    admin, ann = service.admin, service.of("ann", writes=["p"])
    fact = write(
        ann, scope={"projectId": "p"}, retention={"legalHold": True, "keepUntil": "2026-02-01T00:00:00Z"}
    )
    refused(ann.call("POST", f"{FACTS}/{fact}/supersede", {"clear": ["retention"]}), 409, "legal-hold", fact)
    assert done(hold(admin, fact, "release"))["retention"] == {"keepUntil": "2026-02-01T00:00:00.000Z"}
    assert [entry["payload"]["action"] for entry in entries(admin)] == ["release"]


# -- retries


def test_a_hold_that_is_sent_again_answers_as_the_first_time_whatever_came_since(
    service: TenantService,
) -> None:
    admin = service.admin
    fact = write(admin, retention={"keepDays": 30})
    first = {word: done(hold(admin, fact, word, key=word)) for word in ("hold", "release")}
    assert ["legalHold" in first[word]["retention"] for word in first] == [True, False]
    for _ in range(2):
        assert {word: done(hold(admin, fact, word, key=word)) for word in first} == first
        done(admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": "v2"}))
    assert len(entries(admin)) == 2
    assert "legalHold" not in done(admin.call("GET", f"{FACTS}/{fact}"))["retention"]
    reply = hold(admin, fact, key="hold", reason="Another")
    assert (reply.status, reply.code) == (409, "idempotency-key-body-mismatch")


# -- at once


def test_many_facts_held_at_once_by_many_processes_each_have_one_entry(
    ministack: Aws, service: TenantService
) -> None:
    admin = service.admin
    facts = [write(admin) for _ in range(24)]
    processes = [TenantService(ministack.services(), service.tenant).admin for _ in range(6)]
    for process in processes:
        process.call("GET", "/v1/identity/whoami")

    def put(number: int) -> Reply:
        return hold(processes[number % 6], facts[number])

    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(put, range(24)))
    assert [reply.status for reply in replies] == [200] * 24, [reply.text for reply in replies]
    recorded_facts = [entry["payload"]["factId"] for entry in entries(admin)]
    assert sorted(recorded_facts) == sorted(facts)


def test_of_many_holds_and_releases_of_one_fact_at_once_the_entries_tell_what_happened(
    service: TenantService,
) -> None:
    admin = service.admin
    fact = write(admin)

    def put(number: int) -> Reply:
        return hold(admin, fact, ("hold", "release")[number % 2])

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(put, range(16)))
    assert {reply.status for reply in replies} <= {200, 429}
    told = [entry["payload"]["action"] for entry in entries(admin)]
    assert told == [("hold", "release")[number % 2] for number in range(len(told))]
    held = "retention" in done(admin.call("GET", f"{FACTS}/{fact}"))
    assert held is (len(told) % 2 == 1)


def test_a_change_and_a_hold_at_once_are_one_after_the_other(service: TenantService) -> None:
    admin = service.admin
    for _ in range(4):
        fact = write(admin)

        def change(number: int, fact: str = fact) -> Reply:
            if number == 3:
                return hold(admin, fact)
            return admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": number})

        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(change, range(6)))
        held = replies.pop(3)
        assert held.status == 200
        assert {reply.status for reply in replies} <= {200, 409, 429}
        assert [reply.code for reply in replies if reply.status == 409] in (
            [["legal-hold"] * count for count in range(6)]
        )
        landed = [reply.json["version"] for reply in replies if reply.status == 200]
        assert sorted(landed) == list(range(2, 2 + len(landed)))
        assert held.json["version"] == 1 + len(landed), "nothing landed after the hold"


# -- time


def test_a_held_fact_does_not_expire_and_bears_no_stamp_for_the_table_to_remove_it(
    service: TenantService, clock: FakeClock, table: Table
) -> None:
    admin = service.admin
    fact = write(
        admin, retention={"keepDays": 1}, scope={"projectId": "p"}, subjects=[{"kind": "external", "id": "x"}]
    )
    assert "ttl" in table.item(fact)
    done(hold(admin, fact))
    assert not {"ttl", "x"} & table.item(fact).keys()
    (row,) = table.held()
    assert row["pk"].endswith(fact)
    assert {"s", "sj"} <= row.keys(), "what an erasure asks of it"
    clock.advance(days=900)
    assert done(admin.call("GET", f"{FACTS}/{fact}"))["version"] == 1


def test_a_released_fact_whose_retention_has_run_out_ends_at_that_instant(
    service: TenantService, clock: FakeClock, table: Table
) -> None:
    admin = service.admin
    fact = write(admin, retention={"keepDays": 1}, key="k")
    done(hold(admin, fact))
    now = clock.advance(days=3_000)
    assert done(hold(admin, fact, "release", key="r"))["expiresAt"] == now
    assert table.held() == []
    assert table.item(fact)["ttl"] == times.epoch_ms(now) // 1000 + 1, "an old stamp would never be acted on"
    for path in (f"{FACTS}/{fact}", f"{FACTS}/{fact}/revisions"):
        refused(admin.call("GET", path), 404, "fact-not-found", fact)
    assert admin.call("GET", FACTS).json["data"] == []
    again = admin.call("POST", FACTS, NOTE | {"key": "k"})
    assert (again.status, again.json["version"]) == (201, 1), "a new life"


def test_a_released_fact_is_judged_by_the_policy_of_now(service: TenantService, clock: FakeClock) -> None:
    admin = service.admin
    fact = write(admin)
    done(hold(admin, fact))
    done(admin.call("PUT", POLICY, {"types": {"note": {"retention": {"keepDays": 10}}}}))
    clock.advance(days=9)
    assert done(hold(admin, fact, "release"))["expiresAt"] == "2026-01-11T00:00:00.000Z"
    clock.instant = "2026-01-10T23:59:59.999Z"
    done(admin.call("GET", f"{FACTS}/{fact}"))
    clock.instant = "2026-01-11T00:00:00.000Z"
    refused(admin.call("GET", f"{FACTS}/{fact}"), 404, "fact-not-found", fact)


# -- memories


SAID: dict[str, Any] = {"agent": {"id": "copilot"}, "type": "memory", "key": "business"}


def proposal(service: TenantService) -> tuple[Gateway, str]:
    """Ann's proposal over a memory that the account confirmed."""
    ann = service.of("ann")
    made = ann.call("POST", REMEMBER, SAID | {"text": "We sell parts.", "reach": "account"}).json["id"]
    done(service.admin.call("POST", f"{FACTS}/{made}/confirm", {}))
    done(ann.call("POST", REMEMBER, SAID | {"text": "We sell cars.", "keepDays": 2}))
    return ann, str(made)


def texts(caller: Gateway) -> list[str]:
    found = done(caller.call("GET", "/v1/memory/agents/copilot/memories"))["data"]
    return [fact["content"]["text"] for fact in found]


def test_a_held_memory_is_neither_remembered_again_nor_decided_on(service: TenantService) -> None:
    ann, fact = proposal(service)
    done(hold(service.admin, fact))
    for text in ("We sell cars.", "We sell boats."):
        refused(ann.call("POST", REMEMBER, SAID | {"text": text}), 409, "legal-hold", fact)
    for word in ("confirm", "reject"):
        refused(service.admin.call("POST", f"{FACTS}/{fact}/{word}", {}), 409, "legal-hold", fact)
    refused(service.admin.call("DELETE", f"{FACTS}/{fact}"), 409, "legal-hold", fact)
    assert (texts(ann), texts(service.admin)) == (["We sell cars."], ["We sell parts."])


def test_a_held_proposal_outlives_its_window_and_gives_way_when_it_is_released(
    service: TenantService, clock: FakeClock, table: Table
) -> None:
    done(service.admin.call("PUT", POLICY, {"retention": {"keepDays": 20}}))
    ann, fact = proposal(service)
    done(hold(service.admin, fact))
    for sk in ("h", "c"):
        assert not {"ttl", "x"} & table.item(fact, sk).keys()
    clock.advance(days=10)
    assert (texts(ann), texts(service.admin)) == (["We sell cars."], ["We sell parts."])
    now = clock.advance(days=1)
    assert done(hold(service.admin, fact, "release"))["expiresAt"] == now
    assert (texts(ann), texts(service.admin)) == (["We sell parts."], ["We sell parts."])
    given_way = done(service.admin.call("GET", f"{FACTS}/{fact}"))
    assert (given_way["version"], given_way["updatedAt"]) == (4, now)
    assert "retention" not in given_way
    assert given_way["expiresAt"].startswith("2026-01-21T00:00:00.0"), "twenty days from its confirmation"


def test_a_held_confirmed_text_beside_a_proposal_outlives_its_retention_too(
    service: TenantService, clock: FakeClock
) -> None:
    done(service.admin.call("PUT", POLICY, {"retention": {"keepDays": 5}}))
    ann, fact = proposal(service)
    done(hold(service.admin, fact))
    clock.advance(days=400)
    assert (texts(ann), texts(service.admin)) == (["We sell cars."], ["We sell parts."])
    done(hold(service.admin, fact, "release"))
    assert (texts(ann), texts(service.admin)) == ([], [])
    refused(service.admin.call("GET", f"{FACTS}/{fact}"), 404, "fact-not-found", fact)


def test_a_writer_that_holds_its_proposal_holds_the_confirmed_text_beside_it(
    service: TenantService, clock: FakeClock, table: Table
) -> None:
    done(service.admin.call("PUT", POLICY, {"retention": {"keepDays": 5}}))
    ann, fact = proposal(service)
    body = {"content": {"text": "We sell boats."}, "retention": {"legalHold": True}}
    done(ann.call("POST", f"{FACTS}/{fact}/supersede", body))
    assert not {"ttl", "x"} & table.item(fact, "h").keys()
    clock.advance(days=400)
    assert (texts(ann), texts(service.admin)) == (["We sell boats."], ["We sell parts."])


# -- what it costs


def test_a_hold_is_a_read_and_a_transaction_and_a_tail_to_be_read_once(service: TenantService) -> None:
    admin = service.admin
    done(admin.call("GET", POLICY))
    first, second = write(admin), write(admin)
    service.services.policies = KnownPolicies(service.services.policies, lambda: 0.0)
    for fact, operations in (
        (first, ["GetItem", "Query", "TransactWriteItems"]),
        (second, ["GetItem", "TransactWriteItems"]),
    ):
        with recorded(service.services._dynamodb) as calls:
            done(hold(admin, fact))
        assert (calls.operations, calls.attempts) == (operations, len(operations))
        assert units(calls) <= 2 * (1 + 2 * (fact == first) + 6)
    with recorded(service.services._dynamodb) as calls:
        done(hold(admin, first))
    assert calls.operations == ["GetItem"], "it is held already"


def units(calls: Calls) -> int:
    (transaction,) = calls.of("TransactWriteItems")
    puts = [each["Put"] for each in transaction.params["TransactItems"]]
    assert len(puts) == 2
    return 2 * sum(put_units(put["TableName"], put["Item"]) for put in puts)
