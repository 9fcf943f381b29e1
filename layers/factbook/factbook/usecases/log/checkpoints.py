"""Checkpoint a tenant: put changed run heads into its tree, then sign and publish what the tree has become.

Three steps, each safe to repeat and to die in:

1. *stage and swap*: leaves, completed nodes and the new edge land in one transaction on the edge as it was read; of two
   passes one wins and the other reads again, so the leaves of an index are decided once.
2. *sign*: only a tree that is stored, and only when the stored nodes prove that it extends the newest published note.
   A table that was set back, or edited, cannot make the key sign a second history.
3. *publish*: under the tree's size, once, where nobody can overwrite it. Marks of dirty runs go last of all, so whatever
   stops a pass, the next one finds the run again.

A pass takes tenants in turn, a few hundred runs at once, each turn with all three steps; it stops at its deadline, and
the next one goes on with the marks there are.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from factbook.domain.log.merkle import Edge, consistency_proof, leaf_hash
from factbook.domain.log.notes import checkpoint_text, origin_of
from factbook.domain.log.runs import Leaf, new_salt
from factbook.ports.deadline import NEVER, Deadline
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
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.usecases.log.stored_tree import stored_nodes
from factbook.verify import notes as verified
from factbook.verify.findings import Finding
from factbook.verify.tree import extends

LEAVES_AT_ONCE = 40
"""Two items each, an edge and a few nodes: within the 100 items of a transaction."""

RUNS_IN_TURN = 400
"""Of one tenant before the next one's turn: each turn ends with a published tree and cleared marks."""

TURN_SECONDS, PUBLISH_SECONDS = 5.0, 3.0
"""What must be left of a pass to begin a turn, and to go on with one before its tree is published."""

HOWEVER_LONG = 10**16
"""The sequence of a mark that does not know how far its run has grown: beyond every entry."""

ATTEMPTS = 8

Turns = Iterator[tuple[list[DirtyRun], bool]]
"""A tenant's marks, a few hundred at once, and whether others follow."""

Head = tuple[str, int, str]
"""A run, its last sequence, that entry's hash."""


@dataclass(frozen=True)
class CheckpointPorts:
    """What a pass works with."""

    log: LogStore
    tree: TreeStore
    published: CheckpointStore
    signer: Signer
    clock: LogClock
    each: Callable[..., Iterable[Any]] = map
    """Maps over the runs of a turn, several at once where that is safe."""
    tenants_at_once: int = 1


@dataclass(frozen=True)
class Pass:
    """What became of one tenant: the note published last, and runs whose entries contradict their leaves.

    `missing`: marked runs that had no entry; their marks are cleared. `more`: time was over before all of its marks were
    dealt with; the next pass goes on.
    """

    note: PublishedNote | None
    broken: tuple[str, ...] = field(default=())
    more: bool = False
    missing: tuple[str, ...] = field(default=())

    def followed_by(self, turn: "Pass") -> "Pass":
        return Pass(turn.note or self.note, self.broken + turn.broken, turn.more, self.missing + turn.missing)


def mark_runs(tree: TreeStore, runs: Iterable[DirtyRun]) -> None:
    """Note that runs have grown; of each run only the longest matters."""
    longest: dict[tuple[str, str], DirtyRun] = {}
    for run in runs:
        known = longest.get((run.tenant, run.run_id))
        if known is None or known.sequence < run.sequence:
            longest[run.tenant, run.run_id] = run
    for run in longest.values():
        tree.mark_dirty(run)


def checkpoint_all(work: CheckpointPorts, deadline: Deadline = NEVER) -> dict[str, Pass | Exception]:
    """Checkpoint every tenant with dirty runs, in turns of a few hundred runs, until the deadline.

    One tenant's failure, or its many runs, do not keep the others waiting. Tenants are looked for as their turns come, and
    the answer has those that were reached; whom the end of this pass cuts off, another one reaches.
    """
    results: dict[str, Pass | Exception] = {}
    tenants = work.tree.dirty_tenants(deadline)
    waiting: deque[tuple[str, Turns]] = deque()
    running: dict[Future[Pass], tuple[str, Turns]] = {}
    with ThreadPoolExecutor(work.tenants_at_once) as pool:
        while True:
            while len(running) < work.tenants_at_once and deadline.left > TURN_SECONDS:
                following = _next_turns(work.tree, tenants, waiting, deadline)
                if following is None:
                    break
                tenant, turns = following
                results.setdefault(tenant, Pass(None, more=True))
                running[pool.submit(_take_turn, work, tenant, turns, deadline)] = following
            if not running:
                return results
            for finished in wait(running, return_when=FIRST_COMPLETED).done:
                tenant, turns = running.pop(finished)
                results[tenant] = done = _outcome(finished, results[tenant])
                if isinstance(done, Pass) and done.more:
                    waiting.append((tenant, turns))


def _next_turns(
    tree: TreeStore, tenants: Iterator[str], waiting: deque[tuple[str, Turns]], deadline: Deadline
) -> tuple[str, Turns] | None:
    """A tenant that had no turn yet, else one that waits for another; None: there is neither."""
    tenant = next(tenants, None)
    if tenant is not None:
        return tenant, _turns(tree.dirty_of(tenant, deadline), deadline)
    return waiting.popleft() if waiting else None


def _outcome(turn: "Future[Pass]", before: Pass | Exception) -> Pass | Exception:
    try:
        done = turn.result()
    except Exception as error:  # noqa: BLE001 - whatever stops one tenant, the others go on
        return error
    return before.followed_by(done) if isinstance(before, Pass) else done


def checkpoint_tenant(
    work: CheckpointPorts, tenant: str, runs: Iterable[DirtyRun], deadline: Deadline = NEVER
) -> Pass:
    """Put the heads of `runs` into the tenant's tree and publish it, until time is over. Raises CheckpointRefused."""
    turns = _turns(iter(runs), deadline)
    done = _take_turn(work, tenant, turns, deadline)
    while done.more and deadline.left > TURN_SECONDS:
        done = done.followed_by(_take_turn(work, tenant, turns, deadline))
    return done


def _turns(marks: Iterator[DirtyRun], deadline: Deadline) -> Turns:
    """The marks in turns, at least one, and of each whether another follows, or may follow that there was no time to read."""
    runs = list(islice(marks, RUNS_IN_TURN))
    while True:
        following = list(islice(marks, RUNS_IN_TURN))
        yield runs, bool(following) or deadline.passed
        if not following:
            return
        runs = following


def _take_turn(work: CheckpointPorts, tenant: str, turns: Turns, deadline: Deadline) -> Pass:
    """Grow the tree by one turn's runs, publish it, clear their marks: what is done is done, whatever comes next."""
    runs, more = next(turns)
    broken: list[str] = []
    missing: list[str] = []
    done: list[DirtyRun] = []
    edge = work.tree.edge(tenant)
    for start in range(0, len(runs), LEAVES_AT_ONCE):
        if start and deadline.left < PUBLISH_SECONDS:
            more = True
            break
        edge, heads, without = _grow(work, tenant, edge, runs[start : start + LEAVES_AT_ONCE], broken)
        done += heads
        missing += _forget(work, without)
    note = publish_tree(work, tenant, edge)
    list(work.each(work.tree.clear, done))
    return Pass(note, tuple(broken), more, tuple(missing))


def _forget(work: CheckpointPorts, runs: list[DirtyRun]) -> list[str]:
    """Clear the marks of runs that have no entries; their names."""
    marked = [
        run for run in runs if run.sequence != HOWEVER_LONG
    ]  # the others were asked for, and have no mark
    for run in marked:
        work.tree.clear(run)
        begun = work.log.newest(run.tenant, run.run_id, 1)
        if begun:  # meanwhile, and its own mark may have been the one that was cleared
            work.tree.mark_dirty(DirtyRun(run.tenant, run.run_id, begun[0].sequence))
    return [run.run_id for run in marked]


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
) -> tuple[Edge, list[DirtyRun], list[DirtyRun]]:
    """Leaves for the runs that have none for their head; the edge then, up to where each run is in the tree, and the marks
    of runs that have no entry.
    """
    for _ in range(ATTEMPTS):
        heads, done, without = _new_heads(work, tenant, runs, broken)
        growth = growth_by(edge, _leaves(edge, heads))
        if not heads or work.tree.grow(tenant, growth):
            return growth.after, done, without
        edge = work.tree.edge(tenant)
    raise CheckpointRefused("Other passes keep changing the tree.")


def _new_heads(
    work: CheckpointPorts, tenant: str, runs: list[DirtyRun], broken: list[str]
) -> tuple[list[Head], list[DirtyRun], list[DirtyRun]]:
    heads: list[Head] = []
    done: list[DirtyRun] = []
    without: list[DirtyRun] = []
    for run, (newest, leaf, sound) in zip(runs, work.each(partial(_look, work), runs), strict=True):
        if not sound:
            if run.run_id not in broken:
                broken.append(run.run_id)  # its mark stays: every pass says so until someone looks
            continue
        if newest is None:
            without.append(run)
            continue
        if leaf is None or newest.sequence > leaf.sequence:
            heads.append((run.run_id, newest.sequence, newest.entry_hash))
        done.append(DirtyRun(tenant, run.run_id, newest.sequence))
    return heads, done, without


def _look(work: CheckpointPorts, run: DirtyRun) -> tuple[StoredEntry | None, Leaf | None, bool]:
    """A run's last entry, or the one its last leaf commits to when the mark tells of no later one; that leaf; and
    whether the run has the entry that the leaf commits to.
    """
    leaf = work.tree.last_leaf(run.tenant, run.run_id)
    known = None if leaf is None else work.log.entry(run.tenant, run.run_id, leaf.sequence)
    if leaf is not None and (known is None or known.entry_hash != leaf.head):
        return None, leaf, False
    if leaf is not None and leaf.sequence >= run.sequence:
        return known, leaf, True  # a pass died between its leaf and its mark
    return next(iter(work.log.newest(run.tenant, run.run_id, 1)), None), leaf, True


def _leaves(edge: Edge, heads: list[Head]) -> list[Leaf]:
    return [Leaf(index, *head, new_salt()) for index, head in enumerate(heads, edge.size)]


def growth_by(edge: Edge, behind: Iterable[Leaf]) -> Growth:
    """What these leaves, which come behind the edge, make of the tree."""
    after, leaves, nodes = edge, [], []
    for leaf in behind:
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
