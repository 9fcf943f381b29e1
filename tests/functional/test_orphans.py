"""What is left of facts whose end no stream told of: found in the table and in the bucket, and nothing else is touched."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.emulators import Aws
from support.fakes import FakeClock
from support.gateway import Reply
from support.principals import TenantService

from factbook.domain import times
from factbook.ports.deadline import Deadline
from factbook.ports.jobs import DONE, Job
from factbook.usecases.facts.orphans import ORPHANS, sweep_orphans
from factbook.wiring.services import Services

FACTS = "/v1/memory/facts"
LARGE = "x" * 70_000


class World:
    """Tenants over one emulator, whose clock starts now: the emulator's own says when an object was stored."""

    def __init__(self, aws: Aws, tenant: str) -> None:
        self.aws = aws
        self.clock = FakeClock(times.format_instant(datetime.now(UTC)))
        self.services: Services = aws.services(self.clock)
        self.dynamodb, self.s3 = aws.client("dynamodb"), aws.client("s3")
        self.house = TenantService(self.services, tenant)

    def write(self, content: Any = LARGE, house: TenantService | None = None, **fields: Any) -> str:
        answer = self.sent("POST", FACTS, {"type": "note", "content": content, **fields}, house)
        return str(answer.json["id"])

    def supersede(self, fact_id: str, content: Any = LARGE, house: TenantService | None = None) -> None:
        self.clock.advance(seconds=1)
        self.sent("POST", f"{FACTS}/{fact_id}/supersede", {"content": content}, house)

    def sent(self, method: str, path: str, body: Any, house: TenantService | None = None) -> Reply:
        answer: Reply = (house or self.house).admin.call(method, path, body)
        assert answer.status in (200, 201), answer.text
        return answer

    def lose(self, fact_id: str) -> None:
        """Time to live takes the head, and the stream's record of it reaches nobody."""
        key = {"pk": {"S": f"{self.house.tenant}|{fact_id}"}, "sk": {"S": "h"}}
        self.dynamodb.delete_item(TableName=self.aws.settings.facts_table, Key=key)

    def items(self, fact_id: str) -> list[str]:
        """What the table has of a fact: the sort keys."""
        found = self.dynamodb.query(
            TableName=self.aws.settings.facts_table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": f"{self.house.tenant}|{fact_id}"}},
        )
        return [item["sk"]["S"] for item in found["Items"]]

    def objects(self, fact_id: str) -> list[bool]:
        """What the bucket has of a fact: whether each object is pending."""
        bucket = self.aws.settings.blobs_bucket
        found = self.s3.list_objects_v2(Bucket=bucket, Prefix="facts/").get("Contents", [])
        names = [each["Key"] for each in found if f"/{fact_id}/" in each["Key"]]
        return [self.is_pending(name) for name in sorted(names)]

    def is_pending(self, name: str) -> bool:
        tags = self.s3.get_object_tagging(Bucket=self.aws.settings.blobs_bucket, Key=name)["TagSet"]
        return bool(tags == [{"Key": "pending", "Value": "true"}])

    def sweep(self) -> Job:
        """All turns that a walk of the whole table takes."""
        self.clock.advance(days=31)
        while True:
            job = sweep_orphans(self.services.facts.orphans, Deadline(30))
            assert job is not None
            if job.phase == DONE:
                return job


@pytest.fixture(params=["moto", "ministack"])
def world(request: pytest.FixtureRequest, tenant: str) -> Iterator[World]:
    made = World(request.getfixturevalue(request.param), tenant)
    yield made
    made.dynamodb.delete_item(
        TableName=made.aws.settings.access_table, Key={"pk": {"S": f"job|{ORPHANS}"}, "sk": {"S": "job"}}
    )


def test_what_a_lost_removal_left_goes_and_what_facts_have_stays(world: World) -> None:
    kept, lost = world.write(), world.write()
    for fact_id in (kept, lost):
        world.supersede(fact_id)
        world.supersede(fact_id, "small")
    world.lose(lost)
    assert len(world.items(lost)) == 2

    world.sweep()

    assert world.items(lost) == []
    assert len(world.items(kept)) == 3
    assert world.objects(lost) == []  # named by revisions, so removed with them
    assert world.objects(kept) == [False, False]
    assert world.house.admin.call("GET", f"{FACTS}/{kept}/content", query={"version": 1}).status == 307


def test_a_payload_that_only_the_lost_head_named_is_pending_again(world: World) -> None:
    kept, lost = world.write(), world.write()
    world.lose(lost)
    world.sweep()
    assert (world.objects(lost), world.objects(kept)) == ([True], [False])


def test_what_a_former_life_left_goes_and_the_present_one_keeps_its_own(world: World) -> None:
    end = times.add(world.clock.now(), hours=1)
    key = {"key": "k", "scope": {"projectId": "p"}}
    fact_id = world.write(**key, retention={"keepUntil": end})
    world.supersede(fact_id)
    world.clock.advance(days=1)
    assert world.write(**key) == fact_id  # a new life; the record that told of it is lost
    world.supersede(fact_id)
    assert (len(world.items(fact_id)), world.objects(fact_id)) == (3, [False] * 4)

    world.sweep()

    # The former revision and its object are gone, and the former head's object is nobody's.
    assert len(world.items(fact_id)) == 2
    assert sorted(world.objects(fact_id)) == [False, False, True]
    for version in (1, 2):
        asked = world.house.admin.call("GET", f"{FACTS}/{fact_id}/content", query={"version": version})
        name = asked.headers["Location"].partition("?")[0].rpartition("/")[2]
        found = world.s3.list_objects_v2(Bucket=world.aws.settings.blobs_bucket, Prefix="facts/")["Contents"]
        (own,) = [each["Key"] for each in found if each["Key"].endswith(name)]
        assert not world.is_pending(own)


def test_a_confirmed_text_without_its_head_goes_with_the_revisions(world: World) -> None:
    ann = world.house.of("ann")
    said = {"agent": {"id": "copilot"}, "type": "memory", "key": "k"}
    made = ann.call("POST", "/v1/memory/remember", said | {"text": "old", "reach": "account"}).json
    world.sent("POST", f"{FACTS}/{made['id']}/confirm", {})
    ann.call("POST", "/v1/memory/remember", said | {"text": "new"})
    assert world.items(made["id"])[:2] == ["c", "h"]

    world.sweep()
    assert len(world.items(made["id"])) == 4, "a proposal keeps the text beside it"
    world.lose(made["id"])
    world.sweep()
    assert world.items(made["id"]) == []


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "~x|y", "é" * 120, "/"])
def test_the_bucket_is_read_with_the_names_of_tenants_as_they_are(world: World, name: str) -> None:
    house = TenantService(world.services, f"{name}{uuid.uuid4().hex[:6]}")
    fact_id = world.write(house=house)
    world.supersede(fact_id, "small", house)
    world.sweep()
    assert world.objects(fact_id) == [False]
    assert house.admin.call("GET", f"{FACTS}/{fact_id}", query={"version": 1}).status == 200


def test_uploads_are_left_alone_until_nobody_can_be_about_to_name_them(world: World) -> None:
    blobs = world.services.memory.blobs
    lost = str(uuid.uuid4())
    ref = blobs.new_ref(world.house.tenant, lost, "name")
    blobs.put(ref, b"x")
    blobs.claim(ref)  # by a write that died before its fact was there
    job = sweep_orphans(world.services.facts.orphans, Deadline(30))
    assert job is not None
    assert job.phase == DONE
    assert world.objects(lost) == [False]
    world.sweep()
    assert world.objects(lost) == [True]


def test_a_revision_that_cannot_be_read_ends_no_walk_and_keeps_its_payloads(world: World) -> None:
    lost, other = world.write(), world.write()
    for fact_id in (lost, other):
        world.supersede(fact_id)
    (revision,) = [sort for sort in world.items(lost) if sort.startswith("v")]
    key = {"pk": {"S": f"{world.house.tenant}|{lost}"}, "sk": {"S": revision}}
    item = world.dynamodb.get_item(TableName=world.aws.settings.facts_table, Key=key)["Item"]
    world.dynamodb.put_item(TableName=world.aws.settings.facts_table, Item=item | {"d": {"S": "no JSON"}})
    world.lose(lost)
    world.lose(other)
    world.sweep()
    assert (world.items(lost), world.items(other)) == ([revision], [])
    assert (world.objects(lost), world.objects(other)) == ([False, False], [True])


def test_a_bucket_that_refuses_is_tried_again_the_next_day_and_holds_up_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, other = world.write(), world.write("small")
    for fact_id in (lost, other):
        world.supersede(fact_id, "small")
        world.lose(fact_id)

    def refused(ref: str) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListObjectVersions")

    with monkeypatch.context() as patch:
        patch.setattr(world.services.facts.remains, "_discard", refused)
        assert world.sweep().counters["failed"] >= 1
    assert world.items(other) == []
    assert len(world.items(lost)) == 1
    job = world.sweep()
    assert job.counters["failed"] == 0
    assert (world.items(lost), world.objects(lost)) == ([], [])
