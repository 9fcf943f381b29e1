"""Facts as items of the facts table. docs/architecture.md shows an item and explains the letters of its attributes."""

from factbook.adapters.dynamodb.client import Item
from factbook.adapters.dynamodb.key_parts import key, shard_of
from factbook.domain import times
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.freshness import RefreshState, due_at, priority_of
from factbook.domain.facts.type_order import type_place
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.facts.store import Erased, Head, Mark, Row, review_since

LISTING_SHARDS = 4
ADMIN_SHARDS = 8
HEAD = "h"
FAR = "9999-12-31T23:59:59.999Z"
CONFIRMED = "c"
"""The sort key of the confirmed text beside a proposal."""
REVIEW_SHARDS = HELD_SHARDS = 4
DUE_SHARDS = 8
_WAITS, _TWO_TYPES = 1, 2
"""What `rv` says of a head in its rows."""
_BESIDE = {"id", "type", "scope", "version", "revision_id", "stale", "stale_reason"}
"""Fields that are not in `d`: they have attributes of their own, or follow from the key or from the time."""
_REFRESH = {
    "f": "failures",
    "e": "last_error",
    "n": "retry_at",
    "c": "source_changed",
    "a": "asked_at",
    "m": "max_age",
    "g": "by_agent",
}
"""Names in `rf`, of what is known of a source."""
_BESIDE_HEAD = _BESIDE | {"created_at"}
"""A head's `o` begins with it."""


def fact_key(tenant: str, fact_id: str) -> str:
    return key(tenant, fact_id)


def revision_sort(life: int | None, version: int) -> str:
    """The sort key of a closed revision: a new life of an id never meets revisions of a former one."""
    return f"{life_prefix(life)}{version:010d}"


def life_prefix(life: int | None) -> str:
    """What the sort keys of a life's closed revisions begin with."""
    return "v" if life is None else f"v{life:013d}"


def listing_partition(tenant: str, container: str | None, shard: int, *, closed: bool) -> str:
    """The partition of a fact in the listing indexes, or in the administrators' ones when `container` is None."""
    owner = key(tenant, str(shard)) if container is None else key(tenant, container, str(shard))
    return owner + ("|closed" if closed else "")


def erased_partition(tenant: str, erasure_id: str) -> str:
    """Where the tombstones of one erasure stand in the administrators' index, and nothing else does."""
    return key(tenant, "erased", erasure_id)


def held_partition(tenant: str, shard: int) -> str:
    return key(tenant, str(shard))


def revision_item(fact: Fact, life: int | None, *, retyped: bool = False) -> Item:
    """The attributes that closed revisions and heads have in common, with the key of a closed revision.

    `retyped`: the next revision is of another type, so a list as of an earlier instant finds this one by its own row.
    """
    return (_listed_by_type(fact, closed=True) if retyped else {}) | {
        "pk": fact_key(fact.scope.tenant_id, fact.id),
        "sk": revision_sort(life, fact.version),
        "n": fact.version,
        "t": fact.type,
        "s": dump_json(fact.scope.to_json()),
        "c": fact.content_text,
        "kf": fact.kept_from,
        "rq": None if fact.review_why is None else ",".join(fact.review_why),
        "dr": fact.decided_because,
        "d": _details(fact, _BESIDE),
    }


def _details(fact: Fact, beside: set[str]) -> str:
    return dump_json(fact.model_dump(by_alias=True, exclude_none=True, exclude=beside))


def head_item(head: Head) -> Item:
    fact = head.fact
    common = revision_item(fact, head.life) | {
        "sk": HEAD,
        "d": _details(fact, _BESIDE_HEAD),
        "e": head.edition,
        "lf": head.life,
        "k": ",".join(f"{mark.key}{mark.body}{mark.version}" for mark in head.marks) or None,
        "o": _order(fact),
        "sj": None if head.subjects is None else dump_json(list(head.subjects)),
        "er": None if head.erasure is None else head.erasure.by,
        "eb": None if head.erasure is None else head.erasure.blobs,
        "rf": _known_of_source(head.refresh),
        "ie": head.index_edition,
    }
    if fact.invalidation_reason == "erased" and head.erasure is not None:
        return common | {"a": erased_partition(fact.scope.tenant_id, head.erasure.by)}
    return common | {
        **_listed_by_type(fact, closed=not fact.current),
        **_memory(fact),
        **_review(head),
        **_hold(fact),
        **_due(head),
        **_end(head),
    }


def confirmed_item(head: Head, confirmed: Head) -> Item:
    """The confirmed text beside a proposal: in the standing sets, and in the lists of its type where the head is not."""
    fact = confirmed.fact
    listed = _listed_by_type(fact, closed=False) if head.two_types else {}
    return revision_item(fact, confirmed.life) | {
        "sk": CONFIRMED,
        "e": confirmed.edition,
        "lf": confirmed.life,
        "x": fact.expires_at,
        **listed,
        "rf": _known_of_source(confirmed.refresh),
        **_memory(fact),
    }


def _listed_by_type(fact: Fact, *, closed: bool) -> Item:
    """The keys of `listing-type` and `admin-type`, and whose memory it is; an item without `o` stands in no other list."""
    tenant = fact.scope.tenant_id
    return {
        "l": listing_partition(
            tenant, fact.scope.container, shard_of(fact.id, LISTING_SHARDS), closed=closed
        ),
        "a": listing_partition(tenant, None, shard_of(fact.id, ADMIN_SHARDS), closed=closed),
        "y": type_place(fact.type, _order(fact)),
        "ag": fact.agent_id,
        "ow": fact.owner,
    }


def _order(fact: Fact) -> str:
    return f"{fact.created_at}|{fact.id}"


def owner_partition(tenant: str, owner: str, agent: str) -> str:
    return key(tenant, owner, agent)


def account_partition(tenant: str, agent: str) -> str:
    return key(tenant, agent)


def review_partition(tenant: str, state: str, shard: int) -> str:
    return key(tenant, state, str(shard))


def _memory(fact: Fact) -> Item:
    """A current memory stands in its owner's partition of its agent, a confirmed one in the account's too."""
    if fact.agent_id is None or fact.owner is None or not fact.current or fact.reach == "account-rejected":
        return {}
    tenant = fact.scope.tenant_id
    return {
        "m": owner_partition(tenant, fact.owner, fact.agent_id),
        "am": account_partition(tenant, fact.agent_id) if fact.reach == "account" else None,
        "mk": f"{times.epoch_ms(fact.created_at):013d}",
    }


def _review(head: Head) -> Item:
    """What waits for a person is in the index `reviews`, since its revision began or the person was asked; what was
    rejected, apart from it.
    """
    fact = head.fact
    waits = {"rv": _WAITS} if fact.review is not None else {}
    rejected = fact.reach == "account-rejected"
    since = review_since(head)
    if not fact.current or since is None:
        return waits
    shard = shard_of(fact.id, REVIEW_SHARDS)
    state = "rejected" if rejected else "open"
    return waits | {"rw": review_partition(fact.scope.tenant_id, state, shard), "rs": f"{since}|{fact.id}"}


def _end(head: Head) -> Item:
    """When the head ends and may be removed. With a confirmed text beside it, that text follows, so nothing ends before
    that does, and its row of a list hides nothing.
    """
    if head.confirmed is None:
        return {"x": head.fact.expires_at, "ttl": _removal(head.fact)}
    last = head.confirmed.fact.expires_at
    if last is not None:
        last = max(last, head.fact.expires_at or FAR)
    return {
        "cf": 1,
        "rv": _TWO_TYPES if head.two_types else None,
        "x": last,
        "ttl": None if last is None else _removal(head.fact, last),
    }


def _hold(fact: Fact) -> Item:
    return {"hd": held_partition(fact.scope.tenant_id, shard_of(fact.id, HELD_SHARDS))} if fact.held else {}


def due_partition(priority: int, shard: int) -> str:
    return key(str(priority), str(shard))


def due_order(due: str, place: str) -> str:
    """The sort key of a fact that is due; `place` is its partition key."""
    return f"{due}|{place}"


def _due(head: Head) -> Item:
    due = due_at(head.fact, head.refresh)
    if due is None or head.fact.source is None:
        return {}
    place = fact_key(head.fact.scope.tenant_id, head.fact.id)
    shard = shard_of(head.fact.id, DUE_SHARDS)
    return {"du": due_partition(priority_of(head.fact.source), shard), "do": due_order(due, place)}


def _known_of_source(state: RefreshState | None) -> str | None:
    """Compact: names are one letter, and what is as at the beginning is left out."""
    if state is None:
        return None
    known = {letter: getattr(state, name) for letter, name in _REFRESH.items()}
    return (
        dump_json({letter: value for letter, value in known.items() if value})
        if any(known.values())
        else None
    )


def _read_known(text: str | None) -> RefreshState | None:
    return (
        None
        if text is None
        else RefreshState(**{_REFRESH[name]: value for name, value in parse_json(text).items()})
    )


def _removal(fact: Fact, expires_at: str | None = None) -> int | None:
    """When DynamoDB may remove the head, in epoch seconds.

    One second late: it compares whole seconds, and reads hide by the exact instant anyway. Never before the write that
    says so: a stamp more than five years old is not acted on.
    """
    expires_at = expires_at or fact.expires_at
    if expires_at is None:
        return None
    return times.epoch_ms(max(expires_at, fact.invalidated_at or fact.updated_at)) // 1000 + 1


def read_fact(item: Item) -> Fact:
    fact_id = item["pk"].rsplit("|", 1)[1]
    created = {"createdAt": item["o"].partition("|")[0]} if "o" in item else {}
    return Fact.model_validate(
        {
            **created,
            **parse_json(item["d"]),
            "id": fact_id,
            "type": item["t"],
            "scope": parse_json(item["s"]),
            "version": item["n"],
            "revisionId": f"{fact_id}:{item['n']}",
            "contentText": item.get("c"),
            "keptFrom": item.get("kf"),
            "reviewWhy": tuple(item["rq"].split(",")) if "rq" in item else None,
            "decidedBecause": item.get("dr"),
        }
    )


def read_head(item: Item) -> Head:
    marks = tuple(
        Mark(text[:12], text[12:24], int(text[24:])) for text in item.get("k", "").split(",") if text
    )
    subjects = tuple(parse_json(item["sj"])) if "sj" in item else None
    return Head(
        read_fact(item),
        item["e"],
        marks,
        item.get("lf"),
        subjects,
        beside=item["sk"] == CONFIRMED,
        erasure=Erased(item["er"], item["eb"]) if "er" in item else None,
        refresh=_read_known(item.get("rf")),
        index_edition=item.get("ie"),
    )


def read_row(item: Item) -> Row:
    return Row(
        order=item["o"] if "o" in item else item["y"].partition(" ")[2],
        fact_id=item["pk"].rsplit("|", 1)[1],
        type=item["t"],
        scope=parse_json(item["s"]),
        expires_at=item.get("x"),
        pending_review=item.get("rv") == _WAITS,
        agent_id=item.get("ag"),
        owner=item.get("ow"),
        two_types=item.get("rv") == _TWO_TYPES,
    )
