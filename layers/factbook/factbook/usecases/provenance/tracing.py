"""Where a fact comes from: its causes, their causes and the revisions it superseded, each hop authorised again."""

from collections import deque

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.facts.fact import Fact
from factbook.domain.log.entries import LogEntry
from factbook.domain.strict_json import Json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.entries import LogStore
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.reading import list_revisions
from factbook.usecases.log.reading import find_entry
from factbook.usecases.log.sealing import Vault

MAX_NODES = 200
REVISIONS_SHARE = 0.5
"""Of the time, for the fact's own revisions."""
LARGEST_STEP = 512 * 1024
"""What one more node takes of an answer at most: a hundred causes of 512 characters, each beside the fact's id."""


def trace_provenance(
    ports: FactPorts,
    store: LogStore,
    vault: Vault,
    principal: Principal,
    fact_id: str,
    deadline: Deadline = NEVER,
) -> Json:
    """The graph behind a fact, nearest first; `truncated` where it has more nodes, or takes longer, than an answer may.

    Raises FactNotFound. What the caller may not read, and what is not there, are both `unavailable` and lead no further.
    """
    revisions = _revisions(ports, principal, fact_id, deadline.share(REVISIONS_SHARE))
    newest = next(iter(revisions))
    nodes: dict[str, Json] = {}
    edges: list[Json] = []
    waiting = deque([newest])
    seen = {newest}
    room = wire.ANSWER_BYTES
    while waiting and len(nodes) < MAX_NODES and room > LARGEST_STEP and not (nodes and deadline.passed):
        node_id = waiting.popleft()
        revision = revisions.get(node_id)
        if revision is not None:
            nodes[node_id], links = _fact_node(revision), _fact_links(revision)
        else:
            entry = find_entry(store, vault, principal, node_id)
            nodes[node_id], links = _entry_node(node_id, entry), _entry_links(entry)
        room -= wire.value_bytes(nodes[node_id])
        for target, relation in links:
            edges.append({"from": node_id, "to": target, "relation": relation})
            room -= wire.value_bytes(edges[-1])
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return {
        "factId": fact_id,
        "nodes": list(nodes.values()),
        "edges": [edge for edge in edges if edge["to"] in nodes],
        "truncated": bool(waiting),
    }


def _revisions(ports: FactPorts, principal: Principal, fact_id: str, deadline: Deadline) -> dict[str, Fact]:
    """By revision id, newest first, as many as can become nodes and there is time for."""
    found, below = list_revisions(ports, principal, fact_id)
    while below is not None and len(found) < MAX_NODES and not deadline.passed:
        more, below = list_revisions(ports, principal, fact_id, below)
        found += more
    return {fact.revision_id: fact for fact in found}


def _fact_links(fact: Fact) -> list[tuple[str, str]]:
    links = [(cause, "caused-by") for cause in fact.caused_by_log_id or []]
    return links if fact.supersedes is None else [*links, (fact.supersedes, "supersedes")]


def _entry_links(entry: LogEntry | None) -> list[tuple[str, str]]:
    return [] if entry is None or entry.caused_by_log_id is None else [(entry.caused_by_log_id, "caused-by")]


def _fact_node(fact: Fact) -> Json:
    return _present(
        {
            "node": "fact",
            "id": fact.revision_id,
            "factId": fact.id,
            "version": fact.version,
            "type": fact.type,
            "trust": fact.trust,
            "recordedAt": fact.updated_at,
            "attributedTo": fact.attributed_to.to_json(),
            "generatedBy": fact.generated_by and fact.generated_by.to_json(),
        }
    )


def _entry_node(node_id: str, entry: LogEntry | None) -> Json:
    if entry is None:
        return {"node": "unavailable", "id": node_id}
    return _present(
        {
            "node": "log-entry",
            "id": entry.id,
            "kind": entry.kind,
            "runId": entry.run_id,
            "sequence": entry.sequence,
            "actor": entry.actor,
            "timestamp": entry.timestamp,
            "entryHash": entry.entry_hash,
            "payloadErasedAt": entry.payload_erased_at,
            "payloadSealed": entry.payload_sealed,
        }
    )


def _present(node: Json) -> Json:
    return {name: value for name, value in node.items() if value is not None}
