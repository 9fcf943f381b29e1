"""Checkpoint a tenant: put changed run heads into its tree, then sign and publish what the tree has become.

Three steps, each safe to repeat and to die in:

1. *stage and swap*: leaves, completed nodes and the new edge land in one transaction on the edge as it was read; of two
   passes one wins and the other reads again, so the leaves of an index are decided once.
2. *sign*: only a tree that is stored, and only when the stored nodes prove that it extends the newest published note.
   A table that was set back, or edited, cannot make the key sign a second history.
3. *publish*: under the tree's size, once, where nobody can overwrite it. Marks of dirty runs go last of all, so whatever
   stops a pass, the next one finds the run again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from factbook.domain.errors import FactbookError
from factbook.domain.log.merkle import Edge, consistency_proof, leaf_hash
from factbook.domain.log.notes import checkpoint_text, origin_of
from factbook.domain.log.runs import Leaf, new_salt
from factbook.ports.log.checkpoints import (
    CheckpointRefused,
    CheckpointStore,
    DirtyRun,
    Growth,
    PublishedNote,
    Signer,
    TreeStore,
)
from factbook.ports.log.clock import LogClock
from factbook.ports.log.entries import LogStore
from factbook.usecases.log.stored_tree import stored_nodes
from factbook.verify import notes as verified
from factbook.verify.findings import Finding
from factbook.verify.tree import extends

LEAVES_AT_ONCE = 40
"""Two items each, an edge and a few nodes: within the 100 items of a transaction."""

ATTEMPTS = 8


@dataclass(frozen=True)
class CheckpointPorts:
    """What a pass works with."""

    log: LogStore
    tree: TreeStore
    published: CheckpointStore
    signer: Signer
    clock: LogClock


@dataclass(frozen=True)
class Pass:
    """What became of one tenant: the note published last, and runs whose entries contradict their leaves."""

    note: PublishedNote | None
    broken: tuple[str, ...] = field(default=())


def mark_runs(tree: TreeStore, runs: Iterable[DirtyRun]) -> None:
    """Note that runs have grown; of each run only the longest matters."""
    longest: dict[tuple[str, str], DirtyRun] = {}
    for run in runs:
        known = longest.get((run.tenant, run.run_id))
        if known is None or known.sequence < run.sequence:
            longest[run.tenant, run.run_id] = run
    for run in longest.values():
        tree.mark_dirty(run)


def checkpoint_all(work: CheckpointPorts) -> dict[str, Pass | Exception]:
    """Checkpoint every tenant with dirty runs; one tenant's failure does not keep the others waiting."""
    by_tenant: dict[str, list[DirtyRun]] = {}
    for run in work.tree.dirty():
        by_tenant.setdefault(run.tenant, []).append(run)
    results: dict[str, Pass | Exception] = {}
    for tenant, runs in by_tenant.items():
        try:
            results[tenant] = checkpoint_tenant(work, tenant, runs)
        except (FactbookError, CheckpointRefused) as error:
            results[tenant] = error
    return results


def checkpoint_tenant(work: CheckpointPorts, tenant: str, runs: list[DirtyRun]) -> Pass:
    """Put the heads of `runs` into the tenant's tree and publish it. Raises CheckpointRefused."""
    broken: list[str] = []
    done: list[DirtyRun] = []
    edge = work.tree.edge(tenant)
    for start in range(0, len(runs), LEAVES_AT_ONCE):
        edge, heads = _grow(work, tenant, edge, runs[start : start + LEAVES_AT_ONCE], broken)
        done += heads
    note = publish_tree(work, tenant, edge)
    for run in done:
        work.tree.clear(run)
    return Pass(note, tuple(broken))


def publish_tree(work: CheckpointPorts, tenant: str, edge: Edge) -> PublishedNote | None:
    """Sign and publish the tree with this stored edge unless it is published. Raises CheckpointRefused."""
    key = work.signer.key
    newest = _newest(work, tenant)
    size = edge.size
    if newest is not None and newest.size >= size:
        if newest.size == size and newest.root != edge.root():
            raise CheckpointRefused(f"Another tree of {size} leaves is published.")
        if newest.size > work.tree.edge(tenant).size:
            raise CheckpointRefused(f"{newest.size} leaves are published, but the table has {size}.")
        note = newest.note
    elif size == 0:
        return None
    else:
        if newest is not None:
            _require_extension(work.tree, tenant, newest, edge)
        text = checkpoint_text(origin_of(key.name, tenant), size, edge.root())
        note = key.note(text, work.signer.sign(text.encode()))
        work.published.publish(tenant, size, note)
    kept = PublishedNote(max(size, newest.size if newest else 0), note, key.vkey, work.clock.micros())
    work.tree.keep_note(tenant, kept)
    return kept


def _grow(
    work: CheckpointPorts, tenant: str, edge: Edge, runs: list[DirtyRun], broken: list[str]
) -> tuple[Edge, list[DirtyRun]]:
    """Leaves for the runs that have none for their head; the edge then, and up to where each run is in the tree."""
    for _ in range(ATTEMPTS):
        heads, done = _new_heads(work, tenant, runs, broken)
        growth = _growth(edge, heads)
        if not heads or work.tree.grow(tenant, growth):
            return growth.after, done
        edge = work.tree.edge(tenant)
    raise CheckpointRefused("Other passes keep changing the tree.")


def _new_heads(
    work: CheckpointPorts, tenant: str, runs: list[DirtyRun], broken: list[str]
) -> tuple[list[tuple[str, int, str]], list[DirtyRun]]:
    heads: list[tuple[str, int, str]] = []
    done: list[DirtyRun] = []
    for run in runs:
        newest = next(iter(work.log.newest(tenant, run.run_id, 1)), None)
        leaf = work.tree.last_leaf(tenant, run.run_id)
        if _contradicts(work.log, tenant, leaf, newest.sequence if newest else -1):
            if run.run_id not in broken:
                broken.append(run.run_id)  # its mark stays: every pass says so until someone looks
            continue
        if newest is None:
            continue
        if leaf is None or newest.sequence > leaf.sequence:
            heads.append((run.run_id, newest.sequence, newest.entry_hash))
        done.append(DirtyRun(tenant, run.run_id, newest.sequence))
    return heads, done


def _contradicts(log: LogStore, tenant: str, leaf: Leaf | None, newest: int) -> bool:
    """Whether a run no longer has the entry its last leaf commits to."""
    if leaf is None:
        return False
    entry = log.entry(tenant, leaf.run_id, leaf.sequence) if newest >= leaf.sequence else None
    return entry is None or entry.entry_hash != leaf.head


def _growth(edge: Edge, heads: list[tuple[str, int, str]]) -> Growth:
    after, leaves, nodes = edge, [], []
    for run_id, sequence, head in heads:
        leaf = Leaf(after.size, run_id, sequence, head, new_salt())
        hashed = leaf_hash(leaf.data)
        after, completed = after.append(hashed)
        leaves.append((leaf, hashed))
        nodes += completed
    return Growth(edge, after, leaves, nodes)


def _newest(work: CheckpointPorts, tenant: str) -> verified.Checkpoint | None:
    note = work.published.newest(tenant)
    if note is None:
        return None
    try:
        return verified.open_checkpoint(note, verified.read_key(work.signer.key.vkey), tenant)
    except Finding as error:
        raise CheckpointRefused(f"The newest published note does not verify: {error.why}.") from error


def _require_extension(tree: TreeStore, tenant: str, newest: verified.Checkpoint, edge: Edge) -> None:
    try:
        proof = consistency_proof(stored_nodes(tree, tenant), newest.size, edge.size)
    except IndexError as error:
        raise CheckpointRefused("The stored tree has gaps.") from error
    if not extends(newest.size, edge.size, proof, newest.root, edge.root()):
        raise CheckpointRefused(f"The stored tree does not extend the published one of {newest.size} leaves.")
