"""Checkpoints: what is signed is one growing history, whatever fails, dies or runs beside it."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.log_fakes import FakeCheckpoints, FakeKeys, FakeLog, FakeTree, FakeWrapper
from support.logs import StandingClock
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.errors import StorageUnavailable
from factbook.domain.log.merkle import Edge, leaf_hash
from factbook.domain.log.notes import NoteKey, origin_of
from factbook.domain.scope import Scope
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.checkpoints import DirtyRun
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.checkpoints import (
    HOWEVER_LONG,
    RUNS_IN_TURN,
    CheckpointPorts,
    CheckpointRefused,
    Pass,
    checkpoint_all,
    checkpoint_tenant,
    mark_runs,
)
from factbook.usecases.log.proofs import Progress, verify_stored_run
from factbook.usecases.log.reading import LEAVES_AT_ONCE, read_stored_run
from factbook.usecases.log.sealing import Vault
from factbook.verify.notes import open_checkpoint, read_key
from factbook.verify.tree import GrowingRoot

TENANT = "acme"
RUNS = ("a", "b", "c")


class RecordingSigner:
    """Signer that remembers every text it signed."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        self.key = NoteKey("factbook.test", self._private.public_key().public_bytes_raw())
        self.signed: list[str] = []

    def sign(self, text: bytes) -> bytes:
        self.signed.append(text.decode())
        return self._private.sign(text)


class Deployment:
    """The stores of a log and its checkpoints, and passes over them."""

    def __init__(self) -> None:
        self.log, self.tree, self.published = FakeLog(), FakeTree(), FakeCheckpoints()
        self.signer = RecordingSigner()
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        self._writer = LogWriter(self.log, vault, StandingClock(), pause=lambda _: None)

    def append(self, run: str, count: int = 1, tenant: str = TENANT) -> None:
        who = principal(tenant, "admin", admin=True)
        requests = [Request("tool-call", number, scope=Scope(tenantId=tenant)) for number in range(count)]
        entries = append_entries(self._writer, who, run, requests)
        mark_runs(self.tree, [DirtyRun(tenant, run, entry.sequence) for entry in entries])

    def work(self, blows: Blows | None = None) -> CheckpointPorts:
        blows = blows or Blows()
        ports = (Struck(port, blows) for port in (self.log, self.tree, self.published, self.signer))
        return CheckpointPorts(*ports, StandingClock())  # type: ignore[arg-type]

    def roots(self, tenant: str = TENANT) -> dict[int, bytes]:
        growing, roots = GrowingRoot(), {0: GrowingRoot().root()}
        for leaf in self.tree.leaves(tenant, 0, 10**6):
            growing.add(leaf_hash(leaf.data))
            roots[growing.size] = growing.root()
        return roots

    def assert_one_history(self) -> None:
        """Everything ever signed or published is a prefix of the one stored tree."""
        roots = {tenant: self.roots(tenant) for tenant in self.tree._leaves}
        key = read_key(self.signer.key.vkey)
        for text in self.signer.signed:
            origin, size, root = text.splitlines()
            owner = next(tenant for tenant in roots if origin == origin_of(self.signer.key.name, tenant))
            note = open_checkpoint(self.signer.key.note(text, self.signer._private.sign(text.encode())), key)
            assert (note.size, note.root) == (int(size), roots[owner][int(size)])
            assert root
        for (owner, size), text in self.published.notes.items():
            assert open_checkpoint(text, key, owner).root == roots[owner][size]

    def assert_whole(self) -> None:
        """Every run's head is a leaf, the newest note signs for all of them, and nothing waits."""
        newest = self.published.newest(TENANT)
        assert newest is not None
        assert int(newest.splitlines()[1]) == self.tree.edge(TENANT).size
        for run in RUNS:
            head, leaf = self.log.newest(TENANT, run, 1)[0], self.tree.last_leaf(TENANT, run)
            assert leaf is not None
            assert (leaf.sequence, leaf.head) == (head.sequence, head.entry_hash)
        assert list(self.tree.dirty_of(TENANT)) == []
        assert self.tree.notes(TENANT, 10**9, 1)[0].note == newest


@pytest.fixture
def deployment() -> Deployment:
    made = Deployment()
    for run in RUNS:
        made.append(run, 2)
    return made


def test_a_pass_makes_a_leaf_for_each_run_and_publishes_the_tree(deployment: Deployment) -> None:
    assert checkpoint_all(deployment.work())[TENANT].note.size == 3  # type: ignore[union-attr]
    deployment.assert_whole()
    deployment.assert_one_history()


def test_a_pass_without_news_signs_nothing(deployment: Deployment) -> None:
    checkpoint_all(deployment.work())
    assert checkpoint_all(deployment.work()) == {}
    checkpoint_tenant(deployment.work(), TENANT, [DirtyRun(TENANT, "a", 1)])
    assert len(deployment.signer.signed) == 1


def test_a_run_that_grows_gets_a_leaf_each_time(deployment: Deployment) -> None:
    for size in (3, 4, 5):
        checkpoint_all(deployment.work())
        assert deployment.tree.edge(TENANT).size == size
        deployment.append("a")
    checkpoint_all(deployment.work())
    deployment.assert_whole()
    deployment.assert_one_history()
    assert [leaf.sequence for leaf in deployment.tree.run_leaves(TENANT, "a", 0, 9)] == [1, 2, 3, 4]


def cases() -> Iterator[tuple[int, Blow]]:
    """Every call of a second pass, under every blow."""
    probe = Deployment()
    for run in RUNS:
        probe.append(run)
    checkpoint_all(probe.work())
    for run in RUNS[:2]:
        probe.append(run)
    blows = Blows()
    checkpoint_all(probe.work(blows))
    for at in range(len(blows.calls)):
        for blow in Blow:
            yield at, blow


@pytest.mark.parametrize(("at", "blow"), list(cases()), ids=str)
def test_whatever_stops_a_pass_the_next_one_finishes_it_and_no_fork_is_signed(
    deployment: Deployment, at: int, blow: Blow
) -> None:
    checkpoint_all(deployment.work())
    deployment.append("a")
    deployment.append("b")
    with contextlib.suppress(Death, StorageUnavailable):
        checkpoint_all(deployment.work(Blows(blow, at)))
    deployment.assert_one_history()
    deployment.append("c")
    checkpoint_all(deployment.work())
    deployment.assert_whole()
    deployment.assert_one_history()


@pytest.mark.parametrize("at", range(12))
def test_a_pass_that_another_overtakes_at_any_call_contradicts_nothing(
    deployment: Deployment, at: int
) -> None:
    """The other pass runs whole between two calls of this one."""
    checkpoint_all(deployment.work())
    deployment.append("a")
    deployment.append("b")
    blows = Blows()
    work = deployment.work(blows)
    real = Struck.__getattr__

    class Overtaken(Struck):
        def __getattr__(self, name: str) -> object:
            if len(blows.calls) == at and name != "key":
                blows.calls.append("overtaken")
                deployment.append("c")
                checkpoint_all(deployment.work())
            return real(self, name)

    work = replace(work, tree=Overtaken(deployment.tree, blows), log=Overtaken(deployment.log, blows))
    checkpoint_all(work)
    checkpoint_all(deployment.work())
    deployment.assert_whole()
    deployment.assert_one_history()


def test_a_table_set_back_to_an_older_state_cannot_sign_a_second_history(deployment: Deployment) -> None:
    checkpoint_all(deployment.work())
    deployment.tree = FakeTree()  # restored from before the first checkpoint
    deployment.append("a", 3)
    deployment.append("d", 2)
    signed = list(deployment.signer.signed)
    assert isinstance(checkpoint_all(deployment.work())[TENANT], CheckpointRefused)
    for run in ("e", "f", "g", "h"):  # even when it has grown past what is published
        deployment.append(run)
    assert isinstance(checkpoint_all(deployment.work())[TENANT], CheckpointRefused)
    assert deployment.signer.signed == signed


def test_an_edge_edited_by_hand_is_not_signed(deployment: Deployment) -> None:
    checkpoint_all(deployment.work())
    edge = deployment.tree.edge(TENANT)
    deployment.tree._edges[TENANT] = Edge(edge.size, (bytes(32), *edge.peaks[1:]))
    deployment.append("a")
    signed = list(deployment.signer.signed)
    assert isinstance(checkpoint_all(deployment.work())[TENANT], CheckpointRefused)
    assert deployment.signer.signed == signed


def test_a_note_of_another_key_in_the_bucket_stops_the_signer(deployment: Deployment) -> None:
    other = Deployment()
    for run in RUNS:
        other.append(run)
    checkpoint_all(other.work())
    deployment.published.notes = dict(other.published.notes)
    assert isinstance(checkpoint_all(deployment.work())[TENANT], CheckpointRefused)
    assert deployment.signer.signed == []


def test_more_runs_than_a_transaction_holds_are_all_in_one_checkpoint(deployment: Deployment) -> None:
    for number in range(130):
        deployment.append(f"run-{number}")
    checkpoint_all(deployment.work())
    assert deployment.tree.edge(TENANT).size == 133
    assert len(deployment.signer.signed) == 1
    deployment.assert_whole()


def test_a_step_costs_the_same_in_a_small_and_in_a_large_tree() -> None:
    costs = []
    for size in (10, 700):
        deployment = Deployment()
        for number in range(size):
            deployment.append(f"run-{number}")
        checkpoint_all(deployment.work())
        deployment.append("run-0")
        blows = Blows()
        checkpoint_all(deployment.work(blows))
        costs.append(len(blows.calls))
    assert costs[1] <= costs[0] + 8, "a few pages of nodes more, whatever the size"


# -- bounded passes


def countdown(seconds: float) -> Deadline:
    """Time that passes by one second at every question."""
    return Deadline(seconds, itertools.count().__next__)


def crowded(runs: int, *others: str) -> Deployment:
    """A deployment whose first tenant has so many marked runs, and each of the others one."""
    made = Deployment()
    for number in range(runs):
        made.append(f"r{number}")
    for other in others:
        made.append("only", tenant=other)
    return made


def sizes_of(deployment: Deployment) -> dict[str, int]:
    newest = {tenant: deployment.published.newest(tenant) for tenant, _ in deployment.published.notes}
    return {tenant: int(note.splitlines()[1]) for tenant, note in newest.items() if note}


def test_a_tenant_with_more_runs_than_a_pass_can_take_keeps_no_other_waiting() -> None:
    deployment = crowded(3 * RUNS_IN_TURN, "b", "c", "d")
    # Time for the first turns of all four, and not for everything: each turn asks a dozen times or so.
    results = checkpoint_all(deployment.work(), countdown(30))
    published = sizes_of(deployment)
    assert {tenant: published[tenant] for tenant in ("b", "c", "d")} == {"b": 1, "c": 1, "d": 1}
    assert 0 < published[TENANT] < 3 * RUNS_IN_TURN
    result = results[TENANT]
    assert isinstance(result, Pass)
    assert result.more


def test_passes_cut_off_by_their_deadline_reach_everyone_in_the_end_and_go_on_where_they_were() -> None:
    deployment = crowded(2 * RUNS_IN_TURN + 7, *"bcdefgh")
    sizes = []
    for _ in range(60):
        checkpoint_all(deployment.work(), countdown(14))
        deployment.assert_one_history()
        sizes.append(sizes_of(deployment).get(TENANT, 0))
    assert sizes == sorted(sizes)
    assert sizes_of(deployment) == {TENANT: 2 * RUNS_IN_TURN + 7, **dict.fromkeys("bcdefgh", 1)}
    assert list(deployment.tree.dirty_tenants()) == []


def test_what_a_pass_published_before_it_died_is_marked_no_more_and_makes_no_second_leaf() -> None:
    deployment = crowded(2 * RUNS_IN_TURN)
    with contextlib.suppress(Death):
        checkpoint_all(deployment.work(Blows(Blow.DIES_BEFORE, 3 * RUNS_IN_TURN + 600)))
    assert sizes_of(deployment) == {TENANT: RUNS_IN_TURN}
    left = len(list(deployment.tree.dirty_of(TENANT)))
    assert left < 2 * RUNS_IN_TURN
    checkpoint_all(deployment.work())
    assert deployment.tree.edge(TENANT).size == 2 * RUNS_IN_TURN
    deployment.assert_one_history()


def test_a_run_whose_head_is_in_the_tree_already_costs_two_reads() -> None:
    deployment = crowded(1)
    checkpoint_all(deployment.work())
    deployment.tree.mark_dirty(DirtyRun(TENANT, "r0", 0))
    blows = Blows()
    checkpoint_all(deployment.work(blows))
    reads = [
        call for call in blows.calls if call in ("FakeLog.newest", "FakeLog.entry", "FakeTree.last_leaf")
    ]
    assert reads == ["FakeTree.last_leaf", "FakeLog.entry"]
    assert list(deployment.tree.dirty_of(TENANT)) == []


def test_a_tenant_that_fails_in_whatever_way_leaves_the_others_their_turns() -> None:
    deployment = crowded(1, "b", "c")

    class Broken(FakeCheckpoints):
        def publish(self, tenant: str, size: int, note: str) -> None:
            if tenant == "b":
                raise RuntimeError("AccessDenied")
            deployment.published.publish(tenant, size, note)

    results = checkpoint_all(replace(deployment.work(), published=Broken()))
    assert isinstance(results["b"], RuntimeError)
    assert sizes_of(deployment) == {TENANT: 1, "c": 1}


def test_a_checkpoint_on_demand_has_the_runs_it_was_asked_for_first_and_says_when_others_wait() -> None:
    deployment = crowded(2 * RUNS_IN_TURN)
    deployment.append("asked")
    deployment.tree.clear(DirtyRun(TENANT, "asked", 9))  # nobody heard of it yet
    runs = [DirtyRun(TENANT, "asked", HOWEVER_LONG), *deployment.tree.dirty_of(TENANT)]
    done = checkpoint_tenant(deployment.work(), TENANT, runs, countdown(16))
    assert done.more
    assert deployment.tree.last_leaf(TENANT, "asked") is not None
    done = checkpoint_tenant(deployment.work(), TENANT, deployment.tree.dirty_of(TENANT))
    assert not done.more
    assert done.note is not None
    assert done.note.size == 2 * RUNS_IN_TURN + 1


def test_two_passes_at_once_make_one_history_and_leave_nothing() -> None:
    deployment = crowded(150, "b", "c")
    with ThreadPoolExecutor(2) as pool:
        passes = [pool.submit(checkpoint_all, deployment.work()) for _ in range(2)]
        for each in passes:
            assert not [error for error in each.result().values() if isinstance(error, Exception)]
    assert deployment.tree.edge(TENANT).size == 150
    assert list(deployment.tree.dirty_tenants()) == []
    deployment.assert_one_history()


def test_the_mark_of_a_run_without_entries_is_cleared_and_told_of_once() -> None:
    deployment = Deployment()
    deployment.append("real")
    deployment.tree.mark_dirty(DirtyRun(TENANT, "gone", 3))

    first, second = (
        checkpoint_tenant(deployment.work(), TENANT, deployment.tree.dirty_of(TENANT)) for _ in range(2)
    )
    assert (first.missing, second.missing) == (("gone",), ())
    assert list(deployment.tree.dirty_of(TENANT)) == []


def test_a_run_that_begins_while_its_false_mark_is_cleared_is_marked_again() -> None:
    deployment = Deployment()
    deployment.tree.mark_dirty(DirtyRun(TENANT, "late", 3))

    class Begun(FakeTree):
        def clear(self, run: DirtyRun) -> None:
            deployment.append("late")  # its own mark says less than the one that is there
            deployment.tree.clear(run)

    tree = Begun()
    tree.mark_dirty = deployment.tree.mark_dirty  # type: ignore[method-assign]
    checkpoint_tenant(replace(deployment.work(), tree=tree), TENANT, deployment.tree.dirty_of(TENANT))
    assert list(deployment.tree.dirty_of(TENANT)) == [DirtyRun(TENANT, "late", 0)]


def test_a_run_that_a_call_on_demand_names_and_nobody_has_begun_is_no_finding() -> None:
    deployment = Deployment()
    asked = [DirtyRun(TENANT, "never begun", HOWEVER_LONG)]
    assert checkpoint_tenant(deployment.work(), TENANT, asked).missing == ()


def test_a_pass_without_time_looks_for_no_tenant() -> None:
    deployment = crowded(1, "b")
    blows = Blows()
    assert checkpoint_all(deployment.work(blows), countdown(1)) == {}
    assert [call for call in blows.calls if call != "FakeTree.dirty_tenants"] == []


def test_tenants_are_looked_for_as_their_turns_come() -> None:
    deployment = crowded(1, *"bcdefgh")
    asked: list[str] = []

    class Walked(FakeTree):
        def dirty_tenants(self, deadline: Deadline = NEVER) -> Iterator[str]:
            for tenant in deployment.tree.dirty_tenants(deadline):
                asked.append(tenant)
                yield tenant

    tree = Walked()
    tree.__dict__ |= deployment.tree.__dict__
    results = checkpoint_all(replace(deployment.work(), tree=tree), countdown(9))
    assert asked == list(results)
    assert 0 < len(asked) < 8


# -- reads beside passes


class Overtaken:
    """A port beside whose call a run grows and is checkpointed: right before it, or right after."""

    def __init__(self, port: Any, name: str, meanwhile: Callable[[], None], *, before: bool) -> None:
        self._port, self._name, self._meanwhile, self._before = port, name, meanwhile, before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name != self._name:
            return found

        def call(*arguments: Any) -> Any:
            if self._before:
                self._meanwhile()
            answer = found(*arguments)
            if not self._before:
                self._meanwhile()
            return answer

        return call


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("name", ["entries", "run_leaves"])
def test_a_run_that_grows_while_it_is_verified_or_exported_holds(
    deployment: Deployment, name: str, before: bool
) -> None:
    checkpoint_all(deployment.work())
    who = principal(TENANT, "admin", admin=True)

    def meanwhile() -> None:
        deployment.append("a")
        checkpoint_all(deployment.work())

    log = Overtaken(deployment.log, name, meanwhile, before=before) if name == "entries" else deployment.log
    tree = (
        deployment.tree if name == "entries" else Overtaken(deployment.tree, name, meanwhile, before=before)
    )
    answer, following = verify_stored_run(log, tree, who, "a", Progress())  # type: ignore[arg-type]
    assert (answer["holds"], following) == (True, None), answer
    page, leaves = read_stored_run(log, tree, who, "a", 0, 100)  # type: ignore[arg-type]
    assert {leaf.sequence for leaf in leaves} <= {entry["sequence"] for entry in page.data}


def test_a_run_that_lost_its_newest_entry_is_found_out(deployment: Deployment) -> None:
    checkpoint_all(deployment.work())
    del deployment.log._entries[TENANT, "a", 1]
    who = principal(TENANT, "admin", admin=True)
    answer, _ = verify_stored_run(deployment.log, deployment.tree, who, "a", Progress())
    assert (answer["holds"], answer["finding"]["sequence"]) == (False, 1)


def test_the_leaves_of_a_run_whose_entries_are_gone_come_in_parts_each_once(deployment: Deployment) -> None:
    count = 2 * LEAVES_AT_ONCE + 5
    for _ in range(count - 2):
        deployment.append("a")
        checkpoint_all(deployment.work())
    deployment.log._entries = {
        place: entry for place, entry in deployment.log._entries.items() if place[1] != "a"
    }
    who = principal(TENANT, "admin", admin=True)
    seen: list[int] = []
    since, parts = 0, 0
    while True:
        page, leaves = read_stored_run(deployment.log, deployment.tree, who, "a", since, 100)
        assert page.data == []
        assert len(leaves) <= LEAVES_AT_ONCE
        seen += [leaf.sequence for leaf in leaves]
        parts += 1
        if page.following is None:
            break
        since = page.following["since"]
    assert seen == list(range(2, count))
    assert parts == 3
