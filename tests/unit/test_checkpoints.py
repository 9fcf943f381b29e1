"""Checkpoints: what is signed is one growing history, whatever fails, dies or runs beside it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.log_fakes import FakeCheckpoints, FakeKeys, FakeLog, FakeTree, FakeWrapper
from support.logs import StandingClock
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.adapters.log.aes_gcm import AesGcm
from factbook.domain.errors import StorageUnavailable
from factbook.domain.log.merkle import Edge, leaf_hash
from factbook.domain.log.notes import NoteKey
from factbook.domain.scope import Scope
from factbook.ports.log.checkpoints import DirtyRun
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.checkpoints import (
    CheckpointPorts,
    CheckpointRefused,
    checkpoint_all,
    checkpoint_tenant,
    mark_runs,
)
from factbook.usecases.log.sealing import Vault
from factbook.verify.notes import open_checkpoint, read_key
from factbook.verify.tree import GrowingRoot

TENANT = "acme"
ADMIN = principal(TENANT, "admin", admin=True)
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

    def append(self, run: str, count: int = 1) -> None:
        requests = [Request("tool-call", number, scope=Scope(tenantId=TENANT)) for number in range(count)]
        entries = append_entries(self._writer, ADMIN, run, requests)
        mark_runs(self.tree, [DirtyRun(TENANT, run, entry.sequence) for entry in entries])

    def work(self, blows: Blows | None = None) -> CheckpointPorts:
        blows = blows or Blows()
        ports = (Struck(port, blows) for port in (self.log, self.tree, self.published, self.signer))
        return CheckpointPorts(*ports, StandingClock())  # type: ignore[arg-type]

    def roots(self) -> dict[int, bytes]:
        growing, roots = GrowingRoot(), {0: GrowingRoot().root()}
        for leaf in self.tree.leaves(TENANT, 0, 10**6):
            growing.add(leaf_hash(leaf.data))
            roots[growing.size] = growing.root()
        return roots

    def assert_one_history(self) -> None:
        """Everything ever signed or published is a prefix of the one stored tree."""
        roots = self.roots()
        key = read_key(self.signer.key.vkey)
        for text in self.signer.signed:
            _, size, root = text.splitlines()
            note = open_checkpoint(self.signer.key.note(text, self.signer._private.sign(text.encode())), key)
            assert (note.size, note.root) == (int(size), roots[int(size)])
            assert root
        for (_, size), text in self.published.notes.items():
            assert open_checkpoint(text, key, TENANT).root == roots[size]

    def assert_whole(self) -> None:
        """Every run's head is a leaf, the newest note signs for all of them, and nothing waits."""
        newest = self.published.newest(TENANT)
        assert newest is not None
        assert int(newest.splitlines()[1]) == self.tree.edge(TENANT).size
        for run in RUNS:
            head, leaf = self.log.newest(TENANT, run, 1)[0], self.tree.last_leaf(TENANT, run)
            assert leaf is not None
            assert (leaf.sequence, leaf.head) == (head.sequence, head.entry_hash)
        assert self.tree.dirty_of(TENANT) == []
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
