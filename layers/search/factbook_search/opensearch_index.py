"""The search index in an OpenSearch service (2.19 or later, k-NN included).

Each index has an alias for writes, and the active index has the alias `prefix`. Every change names an alias and requires
that it exists, so no write can create an index, whatever the cluster's settings allow.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch

from factbook.domain.errors import SearchUnavailable
from factbook.domain.retrieval.documents import FORMAT, Change, check_filter
from factbook.ports.retrieval.index import (
    EmbeddingSpace,
    Entry,
    EntryPage,
    IndexInfo,
    IndexMissing,
    KeywordLeg,
    Leg,
    LegAnswer,
    LegFailure,
    Refused,
    VectorLeg,
)

from .opensearch_answers import Response, answer, best_of_each, error_type, is_short, total
from .opensearch_client import MISSING, UNAVAILABLE, outages
from .opensearch_queries import Body, Engine, hits_body, index_body, kept_body, neighbours_of
from .opensearch_writes import apply_changes

READ_SECONDS = 10
ADMIN_SECONDS = 30
SERVER_SHARE = 0.8
"""The part of a search's time after which the service is to give up. It is less than 1 so that the answer of a fast leg
still arrives when the other leg is too slow."""
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
        approximate: bool = True,
    ) -> None:
        self._client = client
        self.prefix = prefix
        self._engine = engine
        self._shards = shards
        self._approximate = approximate

    def search(
        self, tenant: str, legs: Sequence[Leg], *, timeout: float = 2.0, index: str | None = None
    ) -> list[LegAnswer]:
        for leg in legs:
            check_filter(leg.filter)
        answers: list[LegAnswer] = [() for _ in legs]
        asked = {at: _Asked(leg, neighbours_of(leg)) for at, leg in enumerate(legs) if not _is_empty(leg)}
        short: dict[int, _Asked] = {}
        for at, (hits, kept) in self._ask(tenant, asked, timeout, index):
            answers[at] = found = answer(legs[at], hits, kept)
            if is_short(legs[at], found, hits, kept):
                neighbours = total(kept) if isinstance(legs[at], VectorLeg) else 0
                short[at] = _Asked(legs[at], neighbours, one_each=True)
        for at, (hits, kept) in self._ask(tenant, short, timeout, index):
            answers[at] = _joined(legs[at], answers[at], answer(legs[at], hits, kept))
        if legs and all(isinstance(each, LegFailure) for each in answers):
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
            IndexInfo(
                name,
                _space(body["mappings"]["_meta"]),
                self.prefix in body["aliases"],
                current=body["mappings"]["_meta"].get("format") == FORMAT,
            )
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
            approximate=self._approximate,
        )
        body["mappings"]["_meta"]["format"] = FORMAT
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

    def purge(self) -> None:
        """The service is told to write down what it has, and to rewrite the segments that hold replaced documents.

        It works on after its answer. A replaced document is kept for half a minute after it was written down, for copies
        that have to catch up: a purge after that lets it go. Snapshots keep what they have.
        """
        names = ",".join(info.name for info in self.indexes())
        if not names:
            return
        with outages():
            self._client.indices.flush(index=names, request_timeout=ADMIN_SECONDS)
            self._client.indices.forcemerge(
                index=names,
                params={"only_expunge_deletes": "true", "wait_for_completion": "false"},
                request_timeout=ADMIN_SECONDS,
            )

    def _write_alias(self, index: str | None) -> str:
        return self.prefix if index is None else f"{index}.writes"

    def _ask(
        self, tenant: str, asked: Mapping[int, "_Asked"], timeout: float, index: str | None
    ) -> Iterator[tuple[int, tuple[Response, Response]]]:
        """By its place the answers to each leg's two bodies, hits and counts: one `_msearch` for all.

        A leg that only some shards answered counts as not answered.
        """
        if not asked:
            return iter(())
        timeout_ms = max(1, int(timeout * SERVER_SHARE * 1000))
        bodies = [body for each in asked.values() for body in each.bodies(tenant, timeout_ms)]
        header = {"index": index or self.prefix, "allow_partial_search_results": False}
        lines = [line for body in bodies for line in (header, body)]
        with outages():
            found = self._client.msearch(body=lines, params={"request_timeout": timeout})
        responses: list[Response] = found["responses"]
        if any(error_type(response) == "index_not_found_exception" for response in responses):
            raise IndexMissing(MISSING)
        return zip(asked, zip(responses[::2], responses[1::2], strict=True), strict=True)

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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A leg as it is sent. One that came back short is sent again: for as many `neighbours` as there are documents, which
    the service then compares one by one; for words, for the best document of each record as the service judges.
    """

    leg: Leg
    neighbours: int
    one_each: bool = False

    def bodies(self, tenant: str, timeout_ms: int) -> tuple[Body, Body]:
        hits = hits_body(tenant, self.leg, self.neighbours, timeout_ms, one_each=self.one_each)
        return hits, kept_body(tenant, self.leg, timeout_ms)


def _joined(leg: Leg, first: LegAnswer, second: LegAnswer) -> LegAnswer:
    if isinstance(leg, VectorLeg) or not isinstance(first, tuple) or not isinstance(second, tuple):
        return second
    return best_of_each((*first, *second), leg.limit)


def _is_empty(leg: Leg) -> bool:
    return leg.limit < 1 or (isinstance(leg, KeywordLeg) and not leg.terms)


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
