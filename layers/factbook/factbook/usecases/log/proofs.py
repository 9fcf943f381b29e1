"""Prove what the log says: the leaves of a tree, an entry's way to a published checkpoint, a run verified on the server."""

import base64
from dataclasses import dataclass
from typing import Any

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.errors import NotFound
from factbook.domain.log.merkle import Nodes, consistency_proof, inclusion_proof
from factbook.domain.log.runs import Leaf
from factbook.domain.strict_json import Json
from factbook.ports.log.checkpoints import CheckpointStore, PublishedNote, TreeStore
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.usecases.log.reading import require_readable_run, stored_form
from factbook.usecases.log.stored_tree import stored_nodes
from factbook.verify.chain import ZERO, Chain, check_format
from factbook.verify.findings import Finding, Tampered

VERIFIED_AT_ONCE = 2000
PROVEN_AT_ONCE = 100
BEYOND_ANY_TREE = 10**12 - 1
NEXT_CHECKPOINT = (
    "New entries are covered each minute; an administrator makes one now with POST /v1/memory/checkpoints."
)


def newest_checkpoint(tree: TreeStore, published: CheckpointStore, tenant: str) -> PublishedNote:
    """The newest note as it is published, which is the bucket's to say. Raises NotFound."""
    note = published.newest(tenant)
    if note is None:
        raise NotFound(f"There is no checkpoint yet. {NEXT_CHECKPOINT}")
    size = int(note.split("\n")[1])
    kept = next((each for each in tree.notes(tenant, size + 1, 1) if each.note == note), None)
    return kept or PublishedNote(size, note, "", "")


def leaf_json(leaf: Leaf, proof: list[str] | None = None) -> Json:
    answer: Json = {
        "index": leaf.index,
        "runId": leaf.run_id,
        "sequence": leaf.sequence,
        "head": leaf.head,
        "salt": leaf.salt,
    }
    return answer if proof is None else answer | {"proof": proof}


class Prover:
    """Proofs within a tree of a given size, over nodes read once."""

    def __init__(self, tree: TreeStore, tenant: str, size: int) -> None:
        self._nodes: Nodes = stored_nodes(tree, tenant)
        self.size = size

    def inclusion(self, index: int) -> list[str]:
        return _encoded(inclusion_proof(self._nodes, index, self.size))

    def extension_of(self, older: int) -> list[str]:
        return _encoded(consistency_proof(self._nodes, older, self.size))


def prover_for(tree: TreeStore, tenant: str, size: int) -> Prover:
    """Proofs for the checkpoint of a size that a caller names. Raises NotFound for one beyond the newest."""
    newest = tree.notes(tenant, BEYOND_ANY_TREE, 1)
    if not newest or newest[0].size < size:
        raise NotFound("There is no checkpoint of that size. List the checkpoints for those there are.")
    return Prover(tree, tenant, size)


def prove_entry(
    store: LogStore,
    tree: TreeStore,
    published: CheckpointStore,
    principal: Principal,
    run_id: str,
    sequence: int,
    older: int | None,
) -> Json:
    """An entry, the entries up to the next checkpointed head, that head's leaf and its proof. Raises NotFound.

    `older` asks for the proof, too, that the checkpoint extends the one of that size.
    """
    tenant = principal.tenant
    require_readable_run(store, principal, run_id)
    leaf = next(iter(tree.run_leaves(tenant, run_id, sequence, 1)), None)
    if leaf is None and store.entry(tenant, run_id, sequence) is None:
        raise NotFound(f"The run has no entry {sequence}. Read the run for those it has.")
    newest = newest_checkpoint(tree, published, tenant)
    if leaf is None or leaf.index >= newest.size:
        raise NotFound(f"No checkpoint covers this entry yet. {NEXT_CHECKPOINT}")
    wanted = leaf.sequence - sequence + 1
    found, _ = store.entries(tenant, run_id, sequence, min(wanted, PROVEN_AT_ONCE))
    entries = wire.fitting(map(stored_form, found), wire.value_bytes)
    prover = Prover(tree, tenant, newest.size)
    answer: Json = {
        "entries": entries,
        "hasMore": len(entries) < wanted,
        "leaf": leaf_json(leaf),
        "inclusion": prover.inclusion(leaf.index),
        "checkpoint": note_json(newest),
    }
    if older is not None and 0 < older <= newest.size:
        answer["consistency"] = {"from": older, "proof": prover.extension_of(older)}
    return answer


def note_json(note: PublishedNote, extension: list[str] | None = None) -> Json:
    answer = {
        "size": note.size,
        "note": note.note,
        "vkey": note.vkey,
        "createdAt": note.created_at,
        "consistency": extension,
        "more": note.more or None,
    }
    return {name: value for name, value in answer.items() if value not in ("", None)}


@dataclass(frozen=True)
class Progress:
    """Where a verification goes on: the last entry's sequence and the hex of its hash."""

    sequence: int = -1
    digest: str = ZERO.decode()

    @classmethod
    def read(cls, position: Json | None) -> "Progress":
        return cls() if position is None else cls(position["sequence"], position["digest"])


def verify_stored_run(
    store: LogStore, tree: TreeStore, principal: Principal, run_id: str, start: Progress
) -> tuple[Json, Json | None]:
    """Follow a run from `start`, against its hashes and its leaves; the findings, and where to go on. Raises NotFound."""
    tenant = principal.tenant
    require_readable_run(store, principal, run_id)
    chain = Chain(run_id, tenant, start.sequence, start.digest.encode())
    # Leaves first: an entry that one commits to was there before it, so whatever is appended meanwhile, a leaf
    # without its entry is a loss.
    leaves = {
        leaf.sequence: leaf for leaf in tree.run_leaves(tenant, run_id, start.sequence + 1, VERIFIED_AT_ONCE)
    }
    entries, more = store.entries(tenant, run_id, start.sequence + 1, VERIFIED_AT_ONCE)
    answer: Json = {"holds": True, "checked": 0}
    try:
        for entry in entries:
            _follow(chain, entry, leaves.pop(entry.sequence, None))
            answer["checked"] += 1
        if not more and leaves:
            raise Tampered(
                "it is missing: a checkpoint committed to a later one", sequence=chain.sequence + 1
            )
    except Finding as finding:
        problem: dict[str, Any] = {"sequence": finding.sequence, "message": finding.why}
        return answer | {"holds": False, "finding": problem}, None
    answer |= {"lastSequence": chain.sequence, "entryHash": "sha256:" + chain.digest.decode()}
    return answer, {"sequence": chain.sequence, "digest": chain.digest.decode()} if more else None


def _follow(chain: Chain, entry: StoredEntry, leaf: Leaf | None) -> None:
    check_format(entry.format)
    chain.follow(entry.text.encode(), entry.entry_hash.removeprefix("sha256:").encode(), entry.cause)
    if entry.sequence != chain.sequence:
        raise Tampered("it stands at another place than its text says", sequence=entry.sequence)
    if leaf is not None and leaf.head != entry.entry_hash:
        raise Tampered(
            f"it was rewritten: leaf {leaf.index} commits to another entry", sequence=entry.sequence
        )


def _encoded(proof: list[bytes]) -> list[str]:
    return [base64.b64encode(each).decode() for each in proof]
