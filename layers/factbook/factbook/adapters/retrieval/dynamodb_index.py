"""The search index in DynamoDB's own vector index: by meaning alone, no cluster, nothing to pay at rest.

`SearchVectors` gives a hundred neighbours of one partition and no second page, and compares with `=` alone. So a search asks the
partitions of all containers that its filter allows at once, compares the rest of the filter with what each neighbour brings along, and
says where a partition may have had more. docs/search.md names what of the index contract this cannot keep.
"""

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from factbook.adapters.dynamodb.client import ConditionFailed, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.dynamodb.reads import batch_get, query_items
from factbook.adapters.retrieval import vector_items as items
from factbook.adapters.retrieval.generations import Generation, Generations
from factbook.domain.errors import SearchUnavailable, StorageUnavailable, Throttled
from factbook.domain.filters import evaluate
from factbook.domain.retrieval.documents import Change, change_problem, check_filter, vector_problem
from factbook.domain.retrieval.narrowing import containers, required
from factbook.ports.contention import Contended
from factbook.ports.retrieval.index import (
    EmbeddingSpace,
    Entry,
    EntryPage,
    Hit,
    IndexInfo,
    IndexMissing,
    KeywordLeg,
    Leg,
    LegAnswer,
    LegFailure,
    PartialHits,
    Refused,
    VectorLeg,
)

MOST = 100
"""Neighbours that the service gives of one partition."""
MOST_PARTITIONS = 220
"""Asked in one search: the containers of who reads a hundred projects and writes them, and a few. Beyond, the tenant's is asked."""
AT_ONCE = 24
BY_CONTAINER, BY_TENANT = "by-container", "by-tenant"
PURGE_SECONDS = 15.0
"""For removing what a dropped generation held, in one call; the next call goes on."""

_UNAVAILABLE = "The search index is not available. Try again."
_AGAIN = "What a dropped index held is still being removed. Try again."


class DynamoIndex:
    """`client` is a boto3 DynamoDB client, `dimensions` what the table's vector indexes were made for."""

    def __init__(self, client: Any, table: str, dimensions: int) -> None:
        self._client = client
        self._table = table
        self._dimensions = dimensions
        self._generations = Generations(client, table)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="vectors")

    def search(
        self, tenant: str, legs: Sequence[Leg], *, timeout: float = 2.0, index: str | None = None
    ) -> list[LegAnswer]:
        for leg in legs:
            check_filter(leg.filter)
        if not legs:
            return []
        deadline = time.monotonic() + timeout
        with _outages():
            generation = self._generation(index)
        answers = [self._answer(generation.name, tenant, leg, deadline) for leg in legs]
        if all(isinstance(answer, LegFailure) for answer in answers):
            raise SearchUnavailable("The search did not answer in time. Try again.")
        return answers

    def apply(self, changes: Sequence[Change], *, index: str | None = None) -> list[Refused]:
        if not changes:
            return []
        with _outages():
            generation = self._generation(index)
        outcomes = self._pool.map(lambda change: self._apply(generation, change), changes)
        return [outcome for outcome in outcomes if outcome is not None]

    def lookup(self, tenant: str, ids: Sequence[str], *, index: str | None = None) -> dict[str, Entry]:
        with _outages():
            generation = self._generation(index).name
            keys = [items.place(generation, tenant, record) for record in ids]
            found = map(
                items.entry_of, batch_get(self._client, self._table, keys, ProjectionExpression=items.KEPT)
            )
            return {entry.id: entry for entry in found}

    def walk(
        self,
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 1000,
        index: str | None = None,
    ) -> EntryPage:
        """By shard, and within it by key; a cursor is where the next page begins."""
        entries: list[Entry] = []
        shard, _, position = (after or "0|").partition("|")
        with _outages():
            generation = self._generation(index).name
            for at in range(int(shard), items.SHARDS):
                pk = items.shard_key(generation, at)
                for row in self._rows(pk, position, tenant, limit):
                    if len(entries) == limit:
                        return EntryPage(tuple(entries), f"{at}|{position}")
                    entries.append(items.entry_of(row))
                    position = row["sk"]
                position = ""
        return EntryPage(tuple(entries), None)

    def refresh(self, *, index: str | None = None) -> None:
        """Nothing can be done: the service brings changes into its vector indexes by itself, as a rule within a second."""
        with _outages():
            self._generation(index)

    def indexes(self) -> list[IndexInfo]:
        with _outages():
            return [each.info for each in self._generations.all() if not each.dropped]

    def create(self, space: EmbeddingSpace | None) -> IndexInfo:
        """Raises SearchUnavailable for vectors of another size than the table's, and for an index of words."""
        if space is None:
            raise SearchUnavailable("This index finds by meaning alone, and no model answers. Try again.")
        if space.dimensions != self._dimensions:
            raise SearchUnavailable(
                f"The model makes vectors of {space.dimensions} dimensions, and the table of vectors was made for "
                f"{self._dimensions}. An operator deploys with VectorDimensions={space.dimensions}, which makes a new table."
            )
        slug = re.sub(r"[^a-z0-9]+", "-", space.model.lower()).strip("-")[:40]
        made = Generation(f"{slug}-{secrets.token_hex(4)}", space)
        with _outages():
            self._purge_dropped()
            self._generations.put(made)
        return made.info

    def activate(self, name: str) -> None:
        """Raises SearchUnavailable while what dropped generations held is still being removed; it is active all the same."""
        with _outages():
            self._generation(name)
            self._generations.activate(name)
            self._purge_dropped()

    def drop(self, name: str) -> None:
        """Nothing searches or writes it from now on. Raises SearchUnavailable while what it held is still being removed."""
        with _outages():
            self._generations.drop(name)
            self._purge_dropped()

    def purge(self) -> None:
        """An item is replaced in place, so what a dropped generation held is all there is. Raises as `drop`."""
        with _outages():
            self._purge_dropped()

    def _generation(self, name: str | None) -> Generation:
        for each in self._generations.all():
            if not each.dropped and (each.active if name is None else each.name == name):
                return each
        raise IndexMissing("There is no search index. Rebuild it.")

    def _answer(self, generation: str, tenant: str, leg: Leg, deadline: float) -> LegAnswer:
        if isinstance(leg, KeywordLeg) or vector_problem(leg.vector, self._dimensions) is not None:
            return LegFailure("unavailable")
        asked = [
            self._pool.submit(self._nearest, where, leg) for where in _partitions(generation, tenant, leg)
        ]
        done, late = wait(asked, max(0.0, deadline - time.monotonic()), FIRST_EXCEPTION)
        for each in late:
            each.cancel()
        if any(each.exception() is not None for each in done):
            return LegFailure("unavailable")
        return LegFailure("timeout") if late else _merged(tenant, leg, asked)

    def _nearest(self, where: dict[str, str], leg: VectorLeg) -> list[dict[str, Any]]:
        values = {f":{name}": value for name, value in where.items()}
        with _outages():
            answer = self._client.search_vectors(
                TableName=self._table,
                IndexName=BY_CONTAINER if "c" in where else BY_TENANT,
                SearchVector=items.numbers(leg.vector)["L"],
                SearchConditionExpression=" AND ".join(f"{name} = :{name}" for name in where),
                ExpressionAttributeValues=to_item(values),
                ProjectionExpression=items.SHOWN,
                TopK=MOST,
            )
        return list(answer["SearchResults"])

    def _apply(self, generation: Generation, change: Change) -> Refused | None:
        problem = change_problem(change, generation.space.dimensions)
        if problem is not None:
            return Refused(change, problem, retry=False)
        item = items.item_of(generation.name, change)
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(n) OR n <= :n",
                    ExpressionAttributeValues={":n": item["n"]},
                )
        except ConditionFailed:
            return None  # a newer one is there
        except (Throttled, StorageUnavailable, Contended) as error:
            return Refused(change, type(error).__name__, retry=True)
        except ClientError as error:
            return Refused(change, str(error.response["Error"]["Code"]), retry=False)
        return None

    def _rows(self, pk: str, position: str, tenant: str | None, limit: int) -> Iterator[dict[str, Any]]:
        """Records of one shard behind a position; of one tenant, if it is given."""
        condition, values = "pk = :pk AND sk > :after", {":pk": pk, ":after": position or " "}
        if tenant is not None:
            own = f"{key(tenant)}|"
            condition, values = "pk = :pk AND begins_with(sk, :own)", {":pk": pk, ":own": own}
        rows = query_items(
            self._client,
            self._table,
            condition,
            values,
            ProjectionExpression=f"sk, {items.KEPT}",
            Limit=limit + 1,
        )
        return (row for row in rows if row["sk"] > position)

    def _purge_dropped(self) -> None:
        end = time.monotonic() + PURGE_SECONDS
        for each in self._generations.all():
            if each.dropped and not self._generations.purge(each, end):
                raise SearchUnavailable(_AGAIN)


def _partitions(generation: str, tenant: str, leg: VectorLeg) -> list[dict[str, str]]:
    """What each search of a leg says: its partition, and source and type where the filter allows one only."""
    alike = {}
    for name, field in (("s", "source"), ("y", "type")):
        allowed = required(leg.filter, field)
        if allowed is not None and len(allowed) == 1:
            alike[name] = str(next(iter(allowed)))
    named = containers(leg.filter)
    if any(not value for value in alike.values()):
        return []  # no record has an empty one
    if named is None or len(named) > MOST_PARTITIONS:
        return [{"t": items.tenant_partition(generation, tenant), **alike}]
    return [{"c": items.container_partition(generation, tenant, each), **alike} for each in sorted(named)]


def _merged(tenant: str, leg: VectorLeg, asked: "Sequence[Future[list[dict[str, Any]]]]") -> LegAnswer:
    """The best of all partitions that pass the whole filter. Those of a full partition are sure down to its last neighbour."""
    kept: list[Hit] = []
    sure = -2.0
    for found in (each.result() for each in asked):
        for result in found:
            item = from_item(result["Item"])
            fields = {**items.fields_of(item), "tenant": tenant, "id": item["id"]}
            if evaluate(leg.filter, fields):
                kept.append(Hit(item["id"], _cosine(result["Score"]), 0, int(item["n"]) // 2))
        if len(found) == MOST:
            sure = max(sure, _cosine(found[-1]["Score"]))
    kept.sort(key=lambda hit: (-hit.score, hit.id))
    best = tuple(kept[: leg.limit])
    if len(best) == leg.limit and best[-1].score >= sure:
        return best
    return best if sure == -2.0 else PartialHits(best, sure)


def _cosine(distance: float) -> float:
    """The service's distance is 0 for the same direction and 2 for the opposite one."""
    return max(-1.0, min(1.0, 1.0 - float(distance)))


@contextmanager
def _outages() -> Iterator[None]:
    """Raises the port's errors in place of the store's."""
    try:
        with store_errors():
            yield
    except (Throttled, StorageUnavailable, Contended) as error:
        raise SearchUnavailable(_UNAVAILABLE) from error
    except ClientError as error:
        missing = error.response["Error"]["Code"] == "ResourceNotFoundException"
        raise (IndexMissing if missing else SearchUnavailable)(_UNAVAILABLE) from error
