"""The index function on what streams send: partial failures, duplicates, poison, and what a time to live leaves behind."""

import importlib.util
import itertools
import json
from dataclasses import replace

import pytest
from support.gateway import ROOT
from support.principals import TenantService

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.facts.dynamodb_items import head_item
from factbook.adapters.facts.dynamodb_stream import fact_records
from factbook.adapters.log.dynamodb_entries import DynamoMessages
from factbook.adapters.log.dynamodb_stream import log_records
from factbook.api.retrieval.events import RESERVE_SECONDS
from factbook.domain.errors import SearchUnavailable, StorageUnavailable, Throttled
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.filters import AllOf
from factbook.domain.retrieval.searchable import index_version
from factbook.ports.jobs import Job
from factbook.ports.log.checkpoints import DirtyRun
from factbook.ports.retrieval.index import EmbeddingSpace, Refused
from factbook.usecases.facts.orphans import ORPHANS
from factbook.usecases.retrieval import leftovers
from factbook.usecases.retrieval.searching import Asked, find
from factbook.wiring.retrieval.services import INDEXING_PATIENCE


def _module():
    spec = importlib.util.spec_from_file_location(
        "functions_index_app", ROOT / "functions" / "index" / "app.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FUNCTION = _module().lambda_handler
SEQUENCE = itertools.count(1)


@pytest.fixture
def services(moto, tmp_path):
    """The index function's services, over moto's tables, a queue for dead letters and an index file."""
    queue = moto.client("sqs").create_queue(QueueName=f"index-dead-letters-{tmp_path.name}")["QueueUrl"]
    made = moto.services()
    made.settings = replace(
        moto.settings, search_sqlite=str(tmp_path / "index.sqlite"), index_dead_letters=queue
    )
    FUNCTION.services = lambda: made
    return made


@pytest.fixture
def wired(services):
    """Its search services, with a fresh index."""
    made = services.searching
    made.index.activate(made.index.create(None).name)
    return made


def follow(records):
    return FUNCTION({"Records": records})


def letters_of(moto, wired):
    found = moto.client("sqs").receive_message(QueueUrl=wired.settings.index_dead_letters)
    return [json.loads(letter["Body"]) for letter in found.get("Messages", [])]


def _take_all_letters(moto, wired):
    while letters_of(moto, wired):
        pass


@pytest.fixture
def writer(moto, tenant):
    return TenantService(moto.services(), tenant)


def _write(writer, content, **said):
    reply = writer.admin.call(
        "POST", "/v1/memory/facts", {"type": "acme.note", "scope": {}, "content": content, **said}
    )
    assert reply.status == 201, reply.text
    return writer.services.memory.facts.head(writer.tenant, reply.json["id"])


def _record(head, *, name="MODIFY", image=None, before=None):
    item = to_item(head_item(head)) if image is None else image
    which = "OldImage" if name == "REMOVE" else "NewImage"
    return {
        "eventName": name,
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:000000000000:table/facts/stream/x",
        "dynamodb": {
            "Keys": {key: item[key] for key in ("pk", "sk")},
            "SequenceNumber": str(next(SEQUENCE)),
            which: item,
            **({} if before is None else {"OldImage": to_item(head_item(before))}),
        },
    }


def _found(wired, tenant, text):
    from factbook.domain.filters import AllOf
    from factbook.ports.retrieval.index import KeywordLeg

    (hits,) = wired.index.search(tenant, [KeywordLeg(wired.tokenizer.query(text), AllOf(), 10)])
    return [hit.id for hit in hits]


def test_heads_are_indexed_and_closed_revisions_are_no_news(wired, writer, tenant):
    head = _write(writer, "tea")
    record = _record(head, name="INSERT")
    revision = _record(head, image={**record["dynamodb"]["NewImage"], "sk": {"S": "v0000000001"}})

    assert follow([revision]) == {"batchItemFailures": []}
    assert _found(wired, tenant, "tea") == []
    assert follow([record, record]) == {"batchItemFailures": []}
    assert _found(wired, tenant, "tea") == [head.fact.id]


def test_an_unreadable_item_goes_to_the_dead_letters_by_key_and_holds_nothing_up(wired, writer, tenant, moto):
    head = _write(writer, "tea")
    broken = _record(head, image={**to_item(head_item(head)), "d": {"S": "secret words, no JSON"}})

    assert follow([broken, _record(head)]) == {"batchItemFailures": []}

    assert letters_of(moto, wired) == [{"key": f"{tenant}|{head.fact.id}", "reason": "unreadable (NoJson)"}]
    assert _found(wired, tenant, "tea") == [head.fact.id]


def test_only_what_the_index_wants_later_waits_and_nothing_is_sent_again(wired, writer, tenant, monkeypatch):
    later, fine = _write(writer, "later"), _write(writer, "fine")
    records = [_record(later), _record(fine)]
    apply = wired.index.apply
    with monkeypatch.context() as patch:
        patch.setattr(
            wired.index,
            "apply",
            lambda changes, index: [
                Refused(changes[0], "busy", retry=True),
                *apply(changes[1:], index=index),
            ],
        )
        assert follow(records) == {"batchItemFailures": []}

    assert _found(wired, tenant, "fine") == [fine.fact.id]
    assert wired.backlog.of(tenant, later.fact.id).trouble == "index"
    assert wired.backlog.of(tenant, fine.fact.id) is None
    assert FUNCTION({"source": "aws.scheduler"})["waiting"] == 0
    assert _found(wired, tenant, "later") == [later.fact.id]


def _down(*_, **__):
    raise SearchUnavailable("down")


@pytest.mark.parametrize("failing", ["apply", "indexes"])
def test_while_the_index_is_down_its_work_waits_and_the_stream_goes_on(
    wired, writer, tenant, moto, monkeypatch, failing
):
    """Records that are put, changed and removed meanwhile; all is in line again after it."""
    gone, kept = _write(writer, "coffee"), _write(writer, "tea")
    follow([_record(gone)])
    large, removal = _expired(writer, tenant)
    with monkeypatch.context() as patch:
        patch.setattr(wired.index, failing, _down)
        for record in (_record(kept), _record(gone, name="REMOVE"), removal):
            assert follow([record]) == {"batchItemFailures": []}
            assert FUNCTION({"source": "aws.scheduler"})["problem"] == "down"
    assert _is_gone(moto, writer, tenant, large)
    for head in (gone, large):
        where = to_item({"pk": f"{tenant}|{head.fact.id}", "sk": "h"})
        moto.client("dynamodb").delete_item(TableName=moto.settings.facts_table, Key=where)

    answer = FUNCTION({"source": "aws.scheduler"})
    assert (answer["problem"], answer["waiting"]) == (None, 0)
    assert _found(wired, tenant, "tea") == [kept.fact.id]
    assert _found(wired, tenant, "coffee milk") == []


def test_what_can_be_neither_indexed_nor_noted_is_sent_again(wired, writer, monkeypatch):
    records = [_record(_write(writer, "tea")), _record(_write(writer, "coffee"))]
    positions = [record["dynamodb"]["SequenceNumber"] for record in records]

    def throttled(_):
        raise Throttled

    monkeypatch.setattr(wired.index, "apply", _down)
    monkeypatch.setattr(wired.backlog, "note", throttled)
    assert [each["itemIdentifier"] for each in follow(records)["batchItemFailures"]] == positions


def test_what_a_time_to_live_removed_is_forgotten_with_its_revisions(wired, writer, tenant):
    head = _write(writer, "tea one")
    writer.admin.call("POST", f"/v1/memory/facts/{head.fact.id}/supersede", {"content": "tea two"})
    head = writer.services.memory.facts.head(tenant, head.fact.id)
    follow([_record(head)])
    assert _found(wired, tenant, "tea") == [head.fact.id]

    assert follow([_record(head, name="REMOVE")]) == {"batchItemFailures": []}
    assert _found(wired, tenant, "tea") == []
    assert writer.services.memory.facts.revisions(head, 99, 10**6) == ([], False)
    follow([_record(head)])  # a late duplicate
    assert _found(wired, tenant, "tea") == []


def test_what_a_new_life_of_a_key_replaced_is_removed_and_the_new_life_is_found(wired, writer, tenant):
    facts, blobs = writer.services.memory.facts, writer.services.memory.blobs
    key = {"key": "k", "onExisting": "supersede"}
    former = _write(writer, "tea " + "x" * 70_000, **key)
    writer.admin.call("POST", f"/v1/memory/facts/{former.fact.id}/supersede", {"content": "tea two"})
    former = facts.head(tenant, former.fact.id)
    large = facts.revision(former, 1).content_ref
    over = former.fact.model_copy(update={"expires_at": former.fact.updated_at})
    former = replace(former, edition=former.edition + 1, fact=over)
    assert facts.amend(replace(former, edition=former.edition - 1), former) is None
    follow([_record(former)])
    born = _write(writer, "coffee", **key)
    assert (born.fact.id, born.fact.version) == (former.fact.id, 1)
    record = _record(born, before=former)

    for records in ([record], [record, _record(former)]):  # once more, and with a late one of the former life
        assert follow(records) == {"batchItemFailures": []}
        assert facts.revisions(former, 99, 10**6) == ([], False)
        assert blobs.stat(large) is None
        assert _found(wired, tenant, "coffee") == [born.fact.id]
        assert _found(wired, tenant, "tea") == []

    later = born.followed_by(born.fact.model_copy(update={"stale": True}), born.marks[0])
    assert follow([_record(later, before=born)]) == {"batchItemFailures": []}
    assert facts.head(tenant, born.fact.id) == born


def test_a_removed_fact_whose_payload_stays_is_tried_again_until_it_is_gone(
    services, wired, writer, tenant, monkeypatch
):
    large, other = _write(writer, "x" * 70_000), _write(writer, "tea")
    blobs = writer.services.memory.blobs
    assert blobs.stat(large.fact.content_ref) is not None
    records = [_record(large, name="REMOVE"), _record(other, name="REMOVE")]

    def unavailable(ref):
        raise StorageUnavailable

    with monkeypatch.context() as struck:
        struck.setattr(services.facts.remains, "_discard", unavailable)
        assert follow(records) == {"batchItemFailures": []}
        for tries in (1, 2):
            FUNCTION({"source": "aws.scheduler"})
            note = wired.leftovers.of(tenant, leftovers.remains_of(large.fact).id)
            assert (note.trouble, note.version) == ("remains", tries)
    assert blobs.stat(large.fact.content_ref) is not None

    FUNCTION({"source": "aws.scheduler"})
    assert wired.leftovers.waiting(tenant, 9) == 0
    assert blobs.stat(large.fact.content_ref) is None


def test_a_payload_that_a_head_came_to_name_is_kept_even_when_its_writer_died_and_the_index_is_down(
    wired, writer, moto, monkeypatch
):
    head = _write(writer, "x" * 70_000)
    s3, (_, _, where) = moto.client("s3"), head.fact.content_ref.removeprefix("blob://").partition("/")
    bucket, _, name = where.partition("/")
    pending = [{"Key": "pending", "Value": "true"}]
    s3.put_object_tagging(Bucket=bucket, Key=name, Tagging={"TagSet": pending})

    def down(*_, **__):
        raise SearchUnavailable("down")

    monkeypatch.setattr(wired.index, "apply", down)
    changed = _record(head)
    changed["dynamodb"]["OldImage"] = changed["dynamodb"]["NewImage"]
    follow([changed])
    assert s3.get_object_tagging(Bucket=bucket, Key=name)["TagSet"] == pending, "it was named before"
    follow([_record(head, name="INSERT")])
    assert s3.get_object_tagging(Bucket=bucket, Key=name)["TagSet"] == []


def test_a_payload_that_cannot_be_kept_for_now_is_tried_again(wired, services, writer, moto, monkeypatch):
    named, plain = _record(_write(writer, "x" * 70_000), name="INSERT"), _record(_write(writer, "tea"))

    def down(_):
        raise StorageUnavailable

    claim, claimed = services.facts.claim, []
    with monkeypatch.context() as patch:
        patch.setattr(services.facts, "claim", down)
        assert follow([named, plain]) == {"batchItemFailures": []}
    monkeypatch.setattr(services.facts, "claim", lambda ref: (claim(ref), claimed.append(ref)))
    for _ in range(2):
        FUNCTION({"source": "aws.scheduler"})
    head = next(fact_records([named])).head
    assert claimed == [head.fact.content_ref]


def test_what_no_store_will_ever_do_ends_in_the_dead_letters(
    wired, services, writer, tenant, moto, monkeypatch
):
    monkeypatch.setattr(leftovers, "TRIES", 2)
    _take_all_letters(moto, wired)
    head = _write(writer, "x" * 70_000)
    elsewhere = head.fact.model_copy(update={"content_ref": "blob://s3/another-bucket/facts/x/y/z"})
    for name in ("INSERT", "REMOVE"):
        assert follow([_record(replace(head, fact=elsewhere), name=name)]) == {"batchItemFailures": []}
    for _ in range(3):
        assert wired.leftovers.waiting(tenant, 9) == 2
        FUNCTION({"source": "aws.scheduler"})
    assert wired.leftovers.waiting(tenant, 9) == 0
    reasons = [letters_of(moto, wired)[0]["reason"] for _ in range(2)]
    assert sorted(reasons) == ["claim (NoSuchBucket)", "remains (StorageUnavailable)"]


def test_what_can_be_neither_done_nor_noted_is_sent_again(wired, services, writer, monkeypatch):
    removal = _record(_write(writer, "x" * 70_000), name="REMOVE")

    def down(_):
        raise StorageUnavailable

    monkeypatch.setattr(services.facts.remains, "remove", down)
    monkeypatch.setattr(wired.leftovers, "note", down)
    assert len(follow([removal])["batchItemFailures"]) == 1


def test_log_entries_are_indexed_from_their_own_stream(wired, writer, tenant, moto):
    scope = {"projectId": "x"}  # one that is not sealed: these tables have no key management
    entries = [
        {"kind": "user-message", "actor": "ana", "payload": {"text": "Where is the office?"}, "scope": scope},
        {"kind": "tool-call", "payload": {"text": "office lookup"}, "scope": scope},
        {"kind": "agent-message", "actor": "bot", "payload": {"text": "Near the castle"}, "scope": scope},
    ]
    reply = writer.admin.call("POST", "/v1/memory/runs/r1/log", {"entries": entries})
    assert reply.status == 201, reply.text
    page = moto.client("dynamodb").scan(TableName=moto.settings.log_table)
    records = [
        {
            "eventName": "INSERT",
            "eventSourceARN": f"arn:aws:dynamodb:us-east-1:1:table/{moto.settings.log_table}/stream/x",
            "dynamodb": {
                "Keys": {"pk": item["pk"], "sk": item["sk"]},
                "SequenceNumber": str(next(SEQUENCE)),
                "NewImage": item,
            },
        }
        for item in page["Items"]
        if item["pk"]["S"].startswith(tenant)
    ]

    assert follow(records) == {"batchItemFailures": []}

    ids = [entry["id"] for entry in reply.json["entries"]]
    assert _found(wired, tenant, "castle") == [ids[2]]
    assert set(_found(wired, tenant, "office")) == {ids[0], ids[2]}
    assert _found(wired, tenant, "lookup") == []


def _of_log(moto, tenant, sequence, **item):
    keys = {"pk": {"S": f"{tenant}|r"}, "sk": {"N": sequence}}
    return {
        "eventName": "INSERT",
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:1:table/{moto.settings.log_table}/stream/x",
        "dynamodb": {"Keys": keys, "SequenceNumber": str(next(SEQUENCE)), "NewImage": {**keys, **item}},
    }


def _strange(tenant):
    scope = {"tenantId": tenant}
    for number, text in enumerate(
        (
            {"scope": {"tenantId": ["x"]}, "runId": "r"},
            {"scope": scope, "runId": 7},
            {"scope": scope, "runId": "another"},
            {"scope": scope, "runId": "r", "kind": ["user-message"], "timestamp": "2026-01-01T00:00:00.000Z"},
            {"scope": {**scope, "threadId": 1}, "runId": "r", "kind": "user-message", "timestamp": "2026"},
            [],
        )
    ):
        yield str(number), {"j": {"S": json.dumps(text)}, "h": {"S": "h"}, "f": {"S": "f"}}
    yield "0.5", {}
    yield "7", {"j": {"N": "1.5"}}


def test_no_item_that_was_put_past_the_service_stops_a_stream_of_the_log(wired, moto, tenant):
    strange = [_of_log(moto, tenant, sequence, **item) for sequence, item in _strange(tenant)]
    for record in strange:
        assert follow([record]) == {"batchItemFailures": []}
    written = {"scope": {"tenantId": tenant}, "runId": "r"}
    good = _of_log(moto, tenant, "8", j={"S": json.dumps(written)})

    runs = [record.run for record in log_records([*strange, good])]
    assert [run and run.sequence for run in runs] == [None, None, None, 3, 4, None, None, None, 8]
    assert runs[-1] == DirtyRun(tenant, "r", 8)
    _take_all_letters(moto, wired)


def test_no_item_that_was_put_past_the_service_stops_a_walk(wired, moto, tenant, writer):
    wired.jobs = replace(wired.jobs, sleep=lambda _: None)
    head, client = _write(writer, "tea"), moto.client("dynamodb")
    row = to_item({"pk": f"{tenant}|bad", "sk": "h", "a": f"{tenant}|0", "o": "2030"})
    rows = [row, row | {"pk": {"S": f"{tenant}|bad2"}, "s": {"S": '{"tenantId": ["x"]}'}}]
    items = [_of_log(moto, tenant, sequence, **item) for sequence, item in _strange(tenant)]
    strange = [(moto.settings.facts_table, item) for item in rows]
    strange += [(moto.settings.log_table, record["dynamodb"]["NewImage"]) for record in items]
    for table, item in strange:
        client.put_item(TableName=table, Item=item)
    try:
        answer = FUNCTION({"factbook": "rebuild"})
        assert (answer["problem"], answer["job"]["phase"]) == (None, "done")
        assert _found(wired, tenant, "tea") == [head.fact.id]
        assert DynamoMessages(client, moto.settings.log_table).walk(None, None, 1).next is not None
    finally:
        for table, item in strange:
            client.delete_item(TableName=table, Key={name: item[name] for name in ("pk", "sk")})


def test_a_command_answers_with_its_progress(wired):
    wired.jobs = replace(wired.jobs, sleep=lambda _: None)  # nobody else writes here
    for command in ("reconcile", "rebuild", "progress"):
        answer = FUNCTION({"factbook": command})
        assert (answer["problem"], answer["waiting"], answer["job"]["phase"]) == (None, 0, "done")


def _expired(writer, tenant):
    """The stream's record of a fact that its time to live removed: two revisions, each with a payload."""
    head = _write(writer, {"text": "tea " * 20_000})
    writer.admin.call("POST", f"/v1/memory/facts/{head.fact.id}/supersede", {"content": "milk " * 20_000})
    head = writer.services.memory.facts.head(tenant, head.fact.id)
    return head, _record(head, name="REMOVE")


def _payloads(moto, tenant, head):
    prefix = f"facts/{tenant}/{head.fact.id}/"
    found = moto.client("s3").list_objects_v2(Bucket=moto.settings.blobs_bucket, Prefix=prefix)
    return found["KeyCount"]


def _is_gone(moto, writer, tenant, head):
    revisions = writer.services.memory.facts.revisions(head, 99, 10**6)
    return revisions == ([], False) and _payloads(moto, tenant, head) == 0


def test_a_deployment_without_search_removes_what_is_left_of_expired_facts(services, writer, tenant, moto):
    services.settings = replace(services.settings, search_sqlite="")
    head, record = _expired(writer, tenant)
    assert _payloads(moto, tenant, head) == 2

    assert follow([_record(_write(writer, "tea")), record]) == {"batchItemFailures": []}
    assert _is_gone(moto, writer, tenant, head)
    # Nobody is called for what was never asked for; who asks for it is told.
    assert FUNCTION({"source": "aws.scheduler"})["problem"] is None
    assert "no search index" in FUNCTION({"factbook": "rebuild"})["problem"]


@pytest.mark.parametrize("failing", ["apply", "indexes"])
def test_what_is_left_of_expired_facts_is_removed_while_the_index_is_down(
    wired, writer, tenant, moto, monkeypatch, failing
):
    head, record = _expired(writer, tenant)
    follow([_record(head)])

    with monkeypatch.context() as patch:
        patch.setattr(wired.index, failing, _down)
        assert follow([record]) == {"batchItemFailures": []}
    assert _is_gone(moto, writer, tenant, head)
    assert _found(wired, tenant, "milk") == [head.fact.id]
    assert follow([record]) == {"batchItemFailures": []}
    assert _found(wired, tenant, "milk") == []


def test_one_facts_store_keeps_no_other_from_being_removed(
    services, wired, writer, tenant, moto, monkeypatch
):
    (first, one), (second, two) = _expired(writer, tenant), _expired(writer, tenant)
    remove = services.facts.remains.remove

    def struck(last, deadline):
        if last.id == first.fact.id:
            raise PermissionError("not one of our errors")
        remove(last, deadline)

    with monkeypatch.context() as patch:
        patch.setattr(services.facts.remains, "remove", struck)
        assert follow([one, two]) == {"batchItemFailures": []}
    assert _is_gone(moto, writer, tenant, second)
    FUNCTION({"source": "aws.scheduler"})
    assert _is_gone(moto, writer, tenant, first)


def test_a_revision_that_was_edited_past_being_read_keeps_no_other(services, wired, writer, tenant, moto):
    head, record = _expired(writer, tenant)
    key = {"pk": {"S": f"{tenant}|{head.fact.id}"}, "sk": {"S": "v0000000009"}}
    moto.client("dynamodb").put_item(TableName=moto.settings.facts_table, Item={**key, "d": {"S": "?"}})

    assert follow([record]) == {"batchItemFailures": []}
    assert _payloads(moto, tenant, head) == 0
    moto.client("dynamodb").delete_item(TableName=moto.settings.facts_table, Key=key)


def test_what_a_stream_gave_up_is_repaired_by_itself(wired, writer, tenant, moto):
    FUNCTION({"source": "aws.scheduler"})
    head = _write(writer, "tea unheard")
    description = json.dumps({"requestContext": {"condition": "RecordAgeExceeded"}})

    assert FUNCTION({"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": description}]}) == {
        "batchItemFailures": []
    }
    assert letters_of(moto, wired) == [{"key": "stream", "reason": description}]
    answer = FUNCTION({"source": "aws.scheduler"})

    assert (answer["problem"], answer["job"]["kind"], answer["job"]["phase"]) == (None, "repair", "done")
    assert _found(wired, tenant, "unheard") == [head.fact.id]
    assert FUNCTION({"source": "aws.scheduler"})["job"] == answer["job"]


def test_what_a_removal_that_a_stream_gave_up_left_is_found_by_the_tick(services, writer, tenant, moto):
    """Also without a search index."""
    services.settings = replace(services.settings, search_sqlite="")
    head = _write(writer, "tea")
    one = f"/v1/memory/facts/{head.fact.id}"
    assert writer.admin.call("POST", f"{one}/supersede", {"content": "milk"}).status == 200
    table, place = moto.settings.facts_table, f"{tenant}|{head.fact.id}"
    moto.client("dynamodb").delete_item(TableName=table, Key={"pk": {"S": place}, "sk": {"S": "h"}})

    def left():
        found = moto.client("dynamodb").query(
            TableName=table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": place}},
        )
        return found["Count"]

    last = Job(ORPHANS, "walk", "done", "2020-01-01T00:00:00.000Z", "", step=0)
    there = services.jobs.job(ORPHANS)
    assert services.jobs.keep(last if there is None else replace(last, step=there.step + 1))
    assert left() == 1
    body = json.dumps({"requestContext": {"condition": "RecordAgeExceeded"}})
    FUNCTION({"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": body}]})
    assert services.jobs.asked(ORPHANS) is not None
    FUNCTION({"source": "aws.scheduler"})
    assert left() == 0


def test_a_payload_whose_record_a_stream_gave_up_is_kept_by_the_repair(wired, writer, tenant, moto):
    wired.jobs = replace(wired.jobs, sleep=lambda _: None)
    head = _write(writer, "x" * 70_000)
    s3, (bucket, _, name) = (
        moto.client("s3"),
        head.fact.content_ref.removeprefix("blob://s3/").partition("/"),
    )
    pending = [{"Key": "pending", "Value": "true"}]
    s3.put_object_tagging(Bucket=bucket, Key=name, Tagging={"TagSet": pending})

    assert FUNCTION({"factbook": "reconcile"})["job"]["phase"] == "done"
    FUNCTION({"source": "aws.scheduler"})
    assert s3.get_object_tagging(Bucket=bucket, Key=name)["TagSet"] == []


def test_what_the_index_refused_is_looked_at_once_more_and_no_oftener(wired, writer, tenant, monkeypatch):
    head = _write(writer, "tea")
    apply = wired.index.apply

    def refusing(changes, index):
        kept = [change for change in changes if change.id != head.fact.id]
        refused = [Refused(change, "mapping", retry=False) for change in changes if change.id == head.fact.id]
        return [*refused, *apply(kept, index=index)]

    with monkeypatch.context() as patch:
        patch.setattr(wired.index, "apply", refusing)
        assert follow([_record(head)]) == {"batchItemFailures": []}
        first = FUNCTION({"source": "aws.scheduler"})["job"]
        assert (first["kind"], first["phase"]) == ("repair", "done")
        assert FUNCTION({"source": "aws.scheduler"})["job"] == first
    assert wired.backlog.of(tenant, head.fact.id).trouble == "refused"


def test_words_are_indexed_and_found_while_the_key_of_the_embeddings_cannot_be_read(
    services, moto, writer, tenant
):
    services.settings = replace(
        services.settings,
        memory_embeddings="openai-compat",
        memory_embeddings_url="http://127.0.0.1:9/v1",
        memory_embeddings_model="m",
        memory_embeddings_api_key="arn:aws:secretsmanager:us-east-1:123456789012:secret:none",
    )
    space = EmbeddingSpace("m", 8)
    index = services.searching.index
    index.activate(index.create(space).name)
    head = _write(writer, "tea")

    assert follow([_record(head)]) == {"batchItemFailures": []}
    assert _found(services.searching, tenant, "tea") == [head.fact.id]
    assert services.searching.backlog.of(tenant, head.fact.id).trouble == "embedding"
    assert FUNCTION({"source": "aws.scheduler"})["problem"] is None
    asked = Asked("both", "tea", 10)
    found = find(services.searching.engine, tenant, asked, AllOf(), lambda hits: {key: key for key in hits})
    assert ([key for key, _ in found.found], found.degraded) == ([head.fact.id], "embeddings-unavailable")


def test_an_invocation_stops_when_its_time_is_nearly_up(wired, writer):
    class Context:
        aws_request_id = "r"

        def get_remaining_time_in_millis(self):
            return 5_000

    records = [_record(_write(writer, "tea")), _record(_write(writer, "coffee"))]
    answer = FUNCTION({"Records": records}, Context())
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == [
        record["dynamodb"]["SequenceNumber"] for record in records
    ]
    begun = FUNCTION({"factbook": "reconcile"}, Context())["job"]
    assert (begun["phase"], begun["records"]) == ("facts", 0)


def test_an_endpoint_that_hangs_is_given_up_within_what_an_invocation_keeps_in_reserve():
    assert (1 + INDEXING_PATIENCE["retries"]) * INDEXING_PATIENCE["timeout"] < RESERVE_SECONDS


def test_a_source_that_agrees_is_no_news_to_the_index_and_the_fact_is_found_as_before(
    wired, writer, tenant, monkeypatch
):
    source = {
        "kind": "http-api",
        "uri": "https://h/",
        "freshness": {"ttlSeconds": 60},
        "refresh": {"strategy": "on-read"},
    }
    head = _write(writer, "tea", source=source)
    follow([_record(head, name="INSERT")])
    agreed = head.rechecked(head.fact, RefreshState(max_age=60))
    again = agreed.rechecked(head.fact, RefreshState())
    asked = []
    monkeypatch.setattr(type(wired.index), "apply", lambda *arguments, **_: asked.append(arguments))

    for before, after in ((head, agreed), (agreed, again), (agreed, again)):
        assert follow([_record(after, before=before)]) == {"batchItemFailures": []}
    assert asked == []
    monkeypatch.undo()
    entry = wired.index.lookup(tenant, [head.fact.id])[head.fact.id]
    assert entry.version == index_version(again.fact, again.searched_as)

    changed = again.followed_by(head.fact.model_copy(update={"content_text": '"coffee"'}), head.marks[0])
    assert follow([_record(changed, before=again)]) == {"batchItemFailures": []}
    assert _found(wired, tenant, "coffee") == [head.fact.id]
    assert follow([_record(again, before=agreed)]) == {"batchItemFailures": []}, "a late one changes nothing"
    assert _found(wired, tenant, "coffee") == [head.fact.id]
