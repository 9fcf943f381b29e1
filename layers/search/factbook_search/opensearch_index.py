"""The search index in an OpenSearch service (2.19 or later, k-NN included).

Each index has an alias for writes, and the active index has the alias `prefix`. Every change names an alias and requires
that it exists, so no write can create an index, whatever the cluster's settings allow.
"""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from opensearchpy import OpenSearch

from factbook.domain.errors import SearchUnavailable
from factbook.domain.retrieval.documents import Change, check_filter
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
    Refused,
    VectorLeg,
)

from .opensearch_client import MISSING, UNAVAILABLE, outages
from .opensearch_queries import Engine, count_body, index_body, leg_body, neighbours_of
from .opensearch_writes import apply_changes

READ_SECONDS = 10
ADMIN_SECONDS = 30
SERVER_SHARE = 0.8
"""The part of a search's time after which the service is to give up. It is less than 1 so that the answer of a fast leg
still arrives when the other leg is too slow."""
TIME_EXCEEDED = {"time_exceeded_exception", "Time exceeded"}
"""Texts by which the service says that a search ran into its timeout; some come as the type of a cause, some as its
reason."""
LOOKUP = 1_000


class OpenSearchIndex:
    """`approximate=False` makes faiss compare every vector, for services without its native library."""

    def __init__(
        self,
        client: OpenSearch,
        prefix: str = "factbook",
        *,
        engine: Engine = "lucene",
        shards: int = 1,
        replicas: int = 1,
        approximate: bool = True,
    ) -> None:
        self._client = client
        self.prefix = prefix
        self._engine = engine
        self._shards = shards
        self._replicas = replicas
        self._approximate = approximate

    def search(
        self, tenant: str, legs: Sequence[Leg], *, timeout: float = 2.0, index: str | None = None
    ) -> list[LegAnswer]:
        for leg in legs:
            check_filter(leg.filter)
        answers: list[LegAnswer] = [() for _ in legs]
        asked = {at: neighbours_of(leg) for at, leg in enumerate(legs) if not _is_empty(leg)}
        found = self._ask(tenant, [(legs[at], near) for at, near in asked.items()], timeout, index)
        short = {}
        for at, (response, passing) in zip(asked, found, strict=True):
            answers[at] = answer = _answer(response, legs[at])
            if _is_short(answer, response, legs[at], passing):
                short[at] = passing
        again = self._ask(tenant, [(legs[at], near) for at, near in short.items()], timeout, index)
        for at, (response, _) in zip(short, again, strict=True):
            answers[at] = _answer(response, legs[at])
        if legs and all(isinstance(answer, LegFailure) for answer in answers):
            raise SearchUnavailable(UNAVAILABLE)
        return answers

    def apply(self, changes: Sequence[Change], *, index: str | None = None) -> list[Refused]:
        return apply_changes(self._client, self._write_alias(index), changes)

    def lookup(self, tenant: str, ids: Sequence[str], *, index: str | None = None) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for start in range(0, len(ids), LOOKUP):
            wanted = list(ids[start : start + LOOKUP])
            rules: list[dict[str, Any]] = [{"term": {"tenant": tenant}}, {"terms": {"id": wanted}}]
            found |= {entry.id: entry for entry in self._heads(rules, len(wanted), None, index)}
        return found

    def walk(
        self,
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 1000,
        index: str | None = None,
    ) -> EntryPage:
        rules: list[dict[str, Any]] = [{"term": {"tenant": tenant}}] if tenant is not None else []
        entries = tuple(self._heads(rules, limit + 1, json.loads(after) if after else None, index))
        if len(entries) <= limit:
            return EntryPage(entries, None)
        last = entries[limit - 1]
        return EntryPage(entries[:limit], json.dumps([last.tenant, last.id]))

    def refresh(self, *, index: str | None = None) -> None:
        with outages():
            self._client.indices.refresh(index=index or self.prefix, request_timeout=ADMIN_SECONDS)

    def indexes(self) -> list[IndexInfo]:
        with outages():
            found = self._client.indices.get(index=f"{self.prefix}-*", request_timeout=READ_SECONDS)
        return [
            IndexInfo(name, _space(body["mappings"]["_meta"]), self.prefix in body["aliases"])
            for name, body in sorted(found.items())
            if body["mappings"].get("_meta", {}).get("prefix") == self.prefix
        ]

    def create(self, space: EmbeddingSpace | None) -> IndexInfo:
        slug = re.sub(r"[^a-z0-9]+", "-", space.model.lower()).strip("-")[:40] if space else "keyword"
        name = f"{self.prefix}-{slug}-{secrets.token_hex(4)}"
        body = index_body(
            self.prefix,
            space,
            self._engine,
            shards=self._shards,
            replicas=self._replicas,
            approximate=self._approximate,
        )
        body["aliases"] = {self._write_alias(name): {}}
        with outages():
            self._client.indices.create(index=name, body=body, request_timeout=ADMIN_SECONDS)
        return IndexInfo(name, space, active=False)

    def activate(self, name: str) -> None:
        others = [info.name for info in self.indexes() if info.active and info.name != name]
        actions = [{"remove": {"index": other, "alias": self.prefix}} for other in others]
        body = {"actions": [*actions, {"add": {"index": name, "alias": self.prefix}}]}
        with outages():
            self._client.indices.update_aliases(body=body, request_timeout=ADMIN_SECONDS)

    def drop(self, name: str) -> None:
        try:
            with outages():
                self._client.indices.delete(index=name, request_timeout=ADMIN_SECONDS)
        except IndexMissing:
            return

    def _write_alias(self, index: str | None) -> str:
        return self.prefix if index is None else f"{index}.writes"

    def _ask(
        self, tenant: str, legs: Sequence[tuple[Leg, int]], timeout: float, index: str | None
    ) -> list[tuple[dict[str, Any], int]]:
        """For each leg its response and, for a vector, how many documents pass its filter: one `_msearch`.

        A leg that only some shards answered counts as not answered.
        """
        if not legs:
            return []
        timeout_ms = max(1, int(timeout * SERVER_SHARE * 1000))
        bodies = [leg_body(tenant, leg, near, timeout_ms) for leg, near in legs]
        bodies += [count_body(tenant, leg, timeout_ms) for leg, _ in legs if isinstance(leg, VectorLeg)]
        header = {"index": index or self.prefix, "allow_partial_search_results": False}
        lines = [line for body in bodies for line in (header, body)]
        with outages():
            answer = self._client.msearch(body=lines, params={"request_timeout": timeout})
        responses: list[dict[str, Any]] = answer["responses"]
        if any(_error_type(response) == "index_not_found_exception" for response in responses):
            raise IndexMissing(MISSING)
        counts = map(_total, responses[len(legs) :])
        return [
            (response, next(counts) if isinstance(leg, VectorLeg) else 0)
            for (leg, _), response in zip(legs, responses, strict=False)
        ]

    def _heads(
        self, rules: list[dict[str, Any]], size: int, after: list[str] | None, index: str | None
    ) -> Iterator[Entry]:
        body: dict[str, Any] = {
            "query": {"bool": {"filter": [{"term": {"chunk": 0}}, *rules]}},
            "sort": [{"tenant": "asc"}, {"id": "asc"}],
            "size": size,
            "track_total_hits": False,
            "_source": False,
            "version": True,
            "docvalue_fields": ["tenant", "id", "live", "revision", "chunks", "embedded"],
        }
        if after is not None:
            body["search_after"] = after
        with outages():
            found = self._client.search(
                index=index or self.prefix,
                body=body,
                params={"allow_partial_search_results": "false"},
                request_timeout=READ_SECONDS,
            )
        return map(_entry, found["hits"]["hits"])


def _is_empty(leg: Leg) -> bool:
    return leg.limit < 1 or (isinstance(leg, KeywordLeg) and not leg.terms)


def _is_short(answer: LegAnswer, response: dict[str, Any], leg: Leg, passing: int) -> bool:
    """Whether a vector leg found fewer records than it should have.

    That happens when chunks of a few records fill all places, and when the graph of many similar vectors returns too few.
    The leg is then asked again for as many neighbours as there are documents: the service compares those one by one.
    """
    if isinstance(leg, KeywordLeg) or isinstance(answer, LegFailure):
        return False
    return len(answer) < leg.limit and _total(response) < passing


def _total(response: dict[str, Any]) -> int:
    return 0 if "error" in response else int(response["hits"]["total"]["value"])


def _answer(response: dict[str, Any], leg: Leg) -> LegAnswer:
    if "error" in response:
        causes = response["error"].get("root_cause", [])
        late = any(TIME_EXCEEDED & {cause.get("type"), cause.get("reason")} for cause in causes)
        return LegFailure("timeout" if late else "unavailable")
    if response["timed_out"]:
        return LegFailure("timeout")
    hits = map(_hit, response["hits"]["hits"])
    return tuple(hits if isinstance(leg, KeywordLeg) else map(_cosine, hits))


def _error_type(response: dict[str, Any]) -> str:
    return str(response["error"].get("type")) if "error" in response else ""


def _cosine(hit: Hit) -> Hit:
    """The service's score of a vector is (1 + cosine) / 2."""
    return replace(hit, score=min(1.0, max(-1.0, 2 * hit.score - 1)))


def _hit(found: dict[str, Any]) -> Hit:
    fields = found["fields"]
    return Hit(fields["id"][0], found["_score"], fields["chunk"][0], found["_version"] // 2)


def _entry(found: dict[str, Any]) -> Entry:
    fields = {name: values[0] for name, values in found["fields"].items()}
    return Entry(
        fields["tenant"],
        fields["id"],
        found["_version"] // 2,
        fields["live"],
        fields.get("revision"),
        fields["chunks"],
        fields["embedded"],
    )


def _space(meta: dict[str, Any]) -> EmbeddingSpace | None:
    return EmbeddingSpace(meta["model"], meta["dimensions"]) if "model" in meta else None
