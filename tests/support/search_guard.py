"""Walks a request to OpenSearch and says whether every condition in it stands under one tenant."""

from typing import Any

from opensearchpy import OpenSearch

Query = dict[str, Any]


def unguarded(query: Query, tenant: str, *, guarded: bool = False) -> list[Query]:
    """The leaves that could reach a document of another tenant."""
    [(kind, body)] = query.items()
    if kind == "bool":
        required = [*body.get("filter", []), *body.get("must", [])]
        guarded = guarded or any(_is_guard(part, tenant) for part in required)
        parts = [part for clause in ("filter", "must", "should", "must_not") for part in body.get(clause, [])]
        return [leaf for part in parts for leaf in unguarded(part, tenant, guarded=guarded)]
    if kind == "knn":
        [field] = body.values()
        return unguarded(field["filter"], tenant) if _is_guard(field["filter"], tenant) else [query]
    return [] if guarded or _is_guard(query, tenant) else [query]


def _is_guard(query: Query, tenant: str) -> bool:
    """Whether a query keeps documents of that tenant only, by itself."""
    [(kind, body)] = query.items()
    if kind == "bool":
        return any(_is_guard(part, tenant) for part in (*body.get("filter", []), *body.get("must", [])))
    return kind == "term" and body == {"tenant": tenant}


class WatchedClient(OpenSearch):
    """Refuses to send a leg that is not under a tenant, and counts the searches it sent."""

    searches = 0

    def msearch(self, *, body: list[Query], **options: Any) -> Any:
        for leg in body[1::2]:
            self.searches += 1
            tenants = _tenants(leg["query"])
            assert len(tenants) == 1, leg
            assert unguarded(leg["query"], tenants.pop()) == [], leg
        return super().msearch(body=body, **options)


def _tenants(query: Query) -> set[str]:
    """The tenants that guard a leg."""
    [(kind, body)] = query.items()
    if kind == "knn":
        return _tenants(body["vector"]["filter"])
    if kind == "term" and "tenant" in body and isinstance(body["tenant"], str):
        return {body["tenant"]}
    return {t for part in body.get("filter", []) for t in _tenants(part)} if kind == "bool" else set()
