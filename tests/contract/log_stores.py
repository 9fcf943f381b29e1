"""What every store of the log keeps, whatever it stands on."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from factbook.domain.log.merkle import Edge, leaf_hash
from factbook.domain.log.runs import Leaf, new_salt
from factbook.domain.log.sealing import KeyName
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.log.checkpoints import (
    CheckpointStore,
    DirtyRun,
    Growth,
    NoteConflict,
    PublishedNote,
    TreeStore,
)
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.log.sealing import KeyStore, SealedKey

AT = "2026-01-01T00:00:{:02d}.000000Z"


def entry_of(
    tenant: str, run: str, sequence: int, text: str = "{}", thread: str | None = None, **extra: str
) -> StoredEntry:
    at = AT.format(sequence) if thread else None
    return StoredEntry(
        tenant,
        run,
        sequence,
        text,
        f"sha256:{sequence:064d}",
        "jcs-sha256-v1",
        thread=thread,
        timestamp=at,
        **extra,
    )


class LogStoreContract:
    """Subclasses give `log`."""

    log: LogStore

    def kept(self, tenant: str, run: str, *sequences: int, **fields: str) -> list[StoredEntry]:
        entries = [entry_of(tenant, run, sequence, **fields) for sequence in sequences]
        for entry in entries:
            assert self.log.put([entry]) is None
        return entries

    def test_an_entry_comes_back_as_it_was_put(self, tenant: str) -> None:
        entry = entry_of(tenant, "r", 0, '{"payload":"é\\n𐀀"}', cause="r:0:00")
        assert self.log.put([entry]) is None
        assert self.log.entry(tenant, "r", 0) == entry

    def test_nothing_is_found_at_another_place(self, tenant: str) -> None:
        self.kept(tenant, "r", 0)
        assert self.log.entry(tenant, "r", 1) is None
        assert self.log.entry(tenant, "s", 0) is None
        assert self.log.entry(tenant + "x", "r", 0) is None
        assert self.log.newest(tenant, "s", 5) == []
        assert self.log.entries(tenant, "s", 0, 5) == ([], False)

    def test_a_place_is_taken_once_and_the_loser_gets_the_entry_that_has_it(self, tenant: str) -> None:
        (first,) = self.kept(tenant, "r", 0)
        assert self.log.put([entry_of(tenant, "r", 0, '{"other":1}')]) == first
        assert self.log.entry(tenant, "r", 0) == first

    def test_runs_are_listed_by_their_first_entry_alone_newest_first(self, tenant: str) -> None:
        places = [{}, {"projectId": "p"}, {"projectId": "p", "threadId": "x"}, {"projectId": "p"}]
        scopes = [Scope(tenantId=tenant, **place) for place in places]
        for number, scope in enumerate(scopes):
            first = entry_of(tenant, f"r|{number}", 0)
            assert self.log.put([replace(first, timestamp=AT.format(number), opens=scope)]) is None
            self.kept(tenant, f"r|{number}", 1)

        def listed(container: str | None, before: str = "~") -> list[tuple[str, Scope]]:
            found = []
            for shard in range(self.log.run_shards(container)):
                rows, more = self.log.runs(tenant, container, shard, before, 100)
                assert not more
                found += rows
            return [(row.run_id, row.scope) for row in sorted(found, key=lambda row: row.order, reverse=True)]

        every = [(f"r|{number}", scope) for number, scope in enumerate(scopes)][::-1]
        assert listed(None) == every
        assert listed(None, f"{AT.format(2)}|r|2") == every[2:]
        assert listed("P:p") == [every[0], every[2]]
        assert listed("W:p") == [every[1]]
        assert listed("T") == [every[3]]
        assert listed("P:q") == []

    def test_a_batch_lands_whole(self, tenant: str) -> None:
        entries = [entry_of(tenant, "r", sequence) for sequence in range(100)]
        assert self.log.put(entries) is None
        assert self.log.entries(tenant, "r", 0, 200)[0] == entries

    def test_a_batch_that_meets_an_entry_writes_nothing_and_gets_the_last_one_it_met(
        self, tenant: str
    ) -> None:
        _, there = self.kept(tenant, "r", 1, 2)
        assert self.log.put([entry_of(tenant, "r", sequence, '{"b":1}') for sequence in range(4)]) == there
        assert self.log.entry(tenant, "r", 0) is None
        assert self.log.entry(tenant, "r", 3) is None

    @pytest.mark.parametrize("run", ["~r", "a" * 256, "r:1", "@._-:~", "a" * 255])
    def test_every_run_id_is_a_run_of_its_own(self, tenant: str, run: str) -> None:
        (entry,) = self.kept(tenant, run, 0)
        self.kept(tenant, "r", 0)
        assert self.log.entries(tenant, run, 0, 5) == ([entry], False)

    def test_entries_come_in_order_from_a_sequence_and_say_whether_more_follow(self, tenant: str) -> None:
        entries = self.kept(tenant, "r", *range(12))
        assert self.log.entries(tenant, "r", 0, 12) == (entries, False)
        assert self.log.entries(tenant, "r", 0, 11) == (entries[:11], True)
        assert self.log.entries(tenant, "r", 9, 10) == (entries[9:], False)
        assert self.log.entries(tenant, "r", 12, 10) == ([], False)

    def test_entries_stop_at_a_budget_of_bytes_but_never_before_the_first(self, tenant: str) -> None:
        entries = self.kept(tenant, "r", 0, 1, 2, text='{"x":"' + "x" * 1000 + '"}')
        assert self.log.entries(tenant, "r", 0, 10, 2500) == (entries[:2], True)
        assert self.log.entries(tenant, "r", 0, 10, 1) == (entries[:1], True)

    def test_a_run_of_more_than_a_page_of_the_store_is_read_whole(self, tenant: str) -> None:
        entries = self.kept(tenant, "r", *range(6), text='{"x":"' + "x" * 300_000 + '"}')
        assert self.log.entries(tenant, "r", 0, 10) == (entries, False)

    def test_the_newest_are_what_one_read_of_a_megabyte_holds_and_the_last_always(self, tenant: str) -> None:
        entries = self.kept(tenant, "r", *range(6), text='{"x":"' + "x" * 300_000 + '"}')
        newest = self.log.newest(tenant, "r", 10)
        assert 1 <= len(newest) <= 4
        assert newest == entries[::-1][: len(newest)]
        assert self.log.newest(tenant, "r", 1) == entries[:4:-1]

    def test_the_newest_come_newest_first(self, tenant: str) -> None:
        entries = self.kept(tenant, "r", *range(12))
        assert self.log.newest(tenant, "r", 1) == [entries[11]]
        assert self.log.newest(tenant, "r", 3) == entries[:8:-1]

    def test_messages_of_a_thread_come_across_runs_in_order_of_time(self, tenant: str) -> None:
        for run, sequences in (("r", (0, 2, 4)), ("s", (1, 3))):
            self.kept(tenant, run, *sequences, thread="t")
        self.kept(tenant, "r", 5, thread="t2")
        self.kept(tenant, "r", 6)
        found = self.log.thread(tenant, "t", None, "", 10, newest_first=False).found
        assert [(entry.run_id, entry.sequence) for _, entry in found] == [
            ("r", 0), ("s", 1), ("r", 2), ("s", 3), ("r", 4),
        ]  # fmt: skip
        back = self.log.thread(tenant, "t", None, "", None, newest_first=True).found
        assert back == found[::-1]

    def test_a_thread_is_walked_by_position_in_both_directions(self, tenant: str) -> None:
        self.kept(tenant, "~r" + "x" * 200, *range(7), thread="t")
        for newest_first in (False, True):
            seen: list[int] = []
            position: str | None = ""
            while position is not None:
                page = self.log.thread(tenant, "t", None, position, 2, newest_first=newest_first)
                seen += [entry.sequence for _, entry in page.found]
                position = page.following
            assert seen == sorted(range(7), reverse=newest_first)

    @pytest.mark.parametrize("newest_first", [False, True])
    def test_messages_of_other_containers_take_no_room_of_a_read_and_those_of_none_are_found(
        self, tenant: str, newest_first: bool
    ) -> None:
        """A name may be shared: those of another lie between two of one's own, and one of before has no container."""
        mine, long = "W:" + "p|%" * 80, "W:" + "p|%" * 80 + "q"
        owners = [mine, *(long for _ in range(40)), mine, None]
        entries = [
            replace(entry_of(tenant, "r", number, thread="t"), container=owner)
            for number, owner in enumerate(owners)
        ]
        assert self.log.put(entries) is None
        hundred = (mine, *(f"W:{number}" for number in range(99)))

        page = self.log.thread(tenant, "t", hundred, "", None, newest_first=newest_first)
        assert [entry.sequence for _, entry in page.found] == sorted([0, 41, 42], reverse=newest_first)
        assert page.following is None
        assert len(self.log.thread(tenant, "t", None, "", None, newest_first=newest_first).found) == 43
        assert self.log.thread(tenant, "t", (), "", None, newest_first=newest_first).found == []

    def test_a_read_of_others_messages_alone_says_where_to_go_on(self, tenant: str) -> None:
        self.kept(tenant, "r", *range(6), thread="t", container="W:q", text='{"x":"' + "x" * 300_000 + '"}')
        self.kept(tenant, "r", 6, thread="t", container="W:p")
        seen, position, reads = [], "", 0
        while True:
            page = self.log.thread(tenant, "t", ("W:p",), position, None, newest_first=False)
            seen += [entry.sequence for _, entry in page.found]
            reads += 1
            if page.following is None:
                break
            assert page.following > position
            position = page.following
        assert seen == [6]
        assert 2 <= reads <= 4

    def test_of_twenty_parallel_puts_at_one_place_one_wins_and_all_learn_which(self, tenant: str) -> None:
        entries = [entry_of(tenant, "r", 0, f'{{"n":{number}}}') for number in range(20)]

        def put(entry: StoredEntry) -> StoredEntry | None:
            while True:
                try:
                    return self.log.put([entry])
                except Contended:
                    continue

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(put, entries))
        assert answers.count(None) == 1
        assert {answer.text for answer in answers if answer} == {entries[answers.index(None)].text}


class KeyStoreContract:
    """Subclasses give `keys`."""

    keys: KeyStore

    @staticmethod
    def key(tenant: str, generation: int = 1, **name: str) -> SealedKey:
        return SealedKey(tenant, KeyName(**name), generation, b"wrapped")

    def test_a_key_comes_back_as_it_was_made(self, tenant: str) -> None:
        key = self.key(tenant, project="p|%", user="~ü", thread="t" * 256)
        assert self.keys.create(key) is None
        assert self.keys.generation(tenant, key.name, 1) == key
        assert self.keys.newest(tenant, key.name) == key
        assert self.keys.newest(tenant, KeyName("p")) is None
        assert self.keys.generation(tenant, key.name, 2) is None

    def test_the_newest_generation_is_found_past_nine(self, tenant: str) -> None:
        for generation in range(1, 13):
            assert self.keys.create(self.key(tenant, generation, user="u")) is None
        newest = self.keys.newest(tenant, KeyName(user="u"))
        assert newest is not None
        assert newest.generation == 12

    def test_a_generation_is_made_once_and_the_loser_gets_the_winner(self, tenant: str) -> None:
        key = self.key(tenant, user="u")
        assert self.keys.create(key) is None
        assert self.keys.create(SealedKey(tenant, key.name, 1, b"other")) == key

    def test_making_the_same_key_again_is_the_same_first_try(self, tenant: str) -> None:
        key = self.key(tenant, user="u")
        assert self.keys.create(key) is None
        assert self.keys.create(key) is None

    def test_a_destroyed_key_leaves_a_tombstone_with_the_first_instant_for_good(self, tenant: str) -> None:
        key = self.key(tenant, user="u")
        self.keys.create(key)
        for at in ("2026-01-01T00:00:00.000000Z", "2026-02-01T00:00:00.000000Z"):
            self.keys.destroy(key, at)
        there = self.keys.generation(tenant, key.name, 1)
        assert there == SealedKey(tenant, key.name, 1, None, "2026-01-01T00:00:00.000000Z")
        assert self.keys.create(key) == there

    def test_a_key_keeps_when_it_began_and_so_does_its_tombstone(self, tenant: str) -> None:
        began = replace(self.key(tenant, user="u"), begun_at="2026-01-01T00:00:00.000Z")
        assert self.keys.create(began) is None
        assert self.keys.create(began) is None
        assert self.keys.newest(tenant, began.name) == began
        self.keys.destroy(began, "2026-02-01T00:00:00.000Z")
        tombstone = replace(began, wrapped=None, destroyed_at="2026-02-01T00:00:00.000Z")
        assert self.keys.generation(tenant, began.name, 1) == tombstone
        assert list(self.keys.walk(tenant)) == [tombstone]

    def test_destroying_what_is_not_there_makes_nothing(self, tenant: str) -> None:
        key = self.key(tenant, user="u")
        self.keys.destroy(key, "2026-01-01T00:00:00.000000Z")
        assert self.keys.generation(tenant, key.name, 1) is None

    def test_a_key_that_is_kept_elsewhere_is_supplied_once_and_one_that_is_destroyed_is_not(
        self, tenant: str
    ) -> None:
        here = replace(self.key(tenant, user="u"), begun_at="2026-01-01T00:00:00.000Z")
        elsewhere = replace(here, wrapped=None)
        assert self.keys.create(elsewhere) is None
        assert self.keys.newest(tenant, here.name) == elsewhere
        assert [self.keys.supply(here), self.keys.supply(here)] == [None, None]
        assert self.keys.generation(tenant, here.name, 1) == here
        assert self.keys.supply(replace(here, wrapped=b"another")) == here

        absent = replace(self.key(tenant, user="v"), begun_at=here.begun_at)
        assert self.keys.supply(absent) is None
        destroyed = self.key(tenant, user="w")
        self.keys.create(replace(destroyed, wrapped=None))
        self.keys.destroy(destroyed, "2026-02-01T00:00:00.000Z")
        there = self.keys.generation(tenant, destroyed.name, 1)
        assert there is not None
        assert there.destroyed_at is not None
        assert self.keys.supply(destroyed) == there
        assert self.keys.generation(tenant, destroyed.name, 1) == there

    def test_a_walk_meets_every_key_of_the_tenant_and_no_other(self, tenant: str) -> None:
        made = {self.key(tenant, user=f"u{number}") for number in range(30)}
        for key in made | {self.key(tenant + "|0", user="x")}:
            self.keys.create(key)
        assert set(self.keys.walk(tenant)) == made

    def test_a_walk_goes_on_behind_any_key(self, tenant: str) -> None:
        for number, first in enumerate("\x01 |%~az" * 4):
            self.keys.create(self.key(tenant, 1 + number % 2, project=f"{first}{number // 2}", user="u"))
        whole = list(self.keys.walk(tenant))
        assert len(whole) == 28

        for at, key in enumerate(whole):
            assert list(self.keys.walk(tenant, key)) == whole[at + 1 :]

    def test_names_that_resemble_each_other_are_apart(self, tenant: str) -> None:
        one, other = self.key(tenant, project="a", user="b"), self.key(tenant, project="a|b")
        assert self.keys.create(one) is None
        assert self.keys.create(other) is None
        assert self.keys.newest(tenant, one.name) == one


def grown(edge: Edge, *heads: tuple[str, int]) -> Growth:
    """What appending leaves for these runs makes of a tree."""
    after, leaves, nodes = edge, [], []
    for run, sequence in heads:
        leaf = Leaf(after.size, run, sequence, f"sha256:{sequence:064d}", new_salt())
        hashed = leaf_hash(leaf.data)
        after, completed = after.append(hashed)
        leaves.append((leaf, hashed))
        nodes += completed
    return Growth(edge, after, leaves, nodes)


class TreeStoreContract:
    """Subclasses give `tree`."""

    tree: TreeStore

    def grow(self, tenant: str, count: int) -> list[Leaf]:
        leaves: list[Leaf] = []
        for start in range(0, count, 40):
            growth = grown(
                self.tree.edge(tenant),
                *((f"r{number % 7}", number) for number in range(start, min(start + 40, count))),
            )
            assert self.tree.grow(tenant, growth)
            leaves += [leaf for leaf, _ in growth.leaves]
        return leaves

    def test_an_empty_tree_has_no_leaves(self, tenant: str) -> None:
        assert self.tree.edge(tenant) == Edge()
        assert self.tree.leaves(tenant, 0, 10) == []
        assert self.tree.last_leaf(tenant, "r") is None

    def test_leaves_come_back_in_order_and_by_their_run(self, tenant: str) -> None:
        leaves = self.grow(tenant, 30)
        assert self.tree.edge(tenant).size == 30
        assert self.tree.leaves(tenant, 0, 100) == leaves
        assert self.tree.leaves(tenant, 10, 5) == leaves[10:15]
        own = [leaf for leaf in leaves if leaf.run_id == "r3"]
        assert self.tree.run_leaves(tenant, "r3", 0, 100) == own
        assert self.tree.run_leaves(tenant, "r3", own[1].sequence, 1) == [own[1]]
        assert self.tree.last_leaf(tenant, "r3") == own[-1]

    def test_of_two_growths_of_one_edge_one_wins_and_nothing_of_the_other_stays(self, tenant: str) -> None:
        self.grow(tenant, 3)
        edge = self.tree.edge(tenant)
        one, other = grown(edge, ("a", 1), ("b", 1)), grown(edge, ("c", 1))
        assert self.tree.grow(tenant, one)
        assert not self.tree.grow(tenant, other)
        assert self.tree.edge(tenant) == one.after
        assert [leaf.run_id for leaf in self.tree.leaves(tenant, 3, 9)] == ["a", "b"]
        assert self.tree.last_leaf(tenant, "c") is None

    def test_a_growth_sent_again_is_known_as_done(self, tenant: str) -> None:
        growth = grown(Edge(), ("a", 1))
        assert self.tree.grow(tenant, growth)
        assert self.tree.grow(tenant, growth)
        assert self.tree.edge(tenant).size == 1

    def test_of_parallel_growths_each_leaf_index_is_decided_once(self, tenant: str) -> None:
        def grow(number: int) -> None:
            while not self.tree.grow(tenant, grown(self.tree.edge(tenant), (f"r{number}", number))):
                continue

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(grow, range(8)))
        leaves = self.tree.leaves(tenant, 0, 20)
        assert [leaf.index for leaf in leaves] == list(range(8))
        assert sorted(leaf.sequence for leaf in leaves) == list(range(8))
        edge = Edge()
        for leaf in leaves:
            edge, _ = edge.append(leaf_hash(leaf.data))
        assert self.tree.edge(tenant) == edge

    def test_a_dirty_run_is_marked_up_to_its_longest_and_cleared_only_that_far(self, tenant: str) -> None:
        for sequence in (3, 7, 5):
            self.tree.mark_dirty(DirtyRun(tenant, "r", sequence))
        assert list(self.tree.dirty_of(tenant)) == [DirtyRun(tenant, "r", 7)]
        self.tree.clear(DirtyRun(tenant, "r", 6))
        assert list(self.tree.dirty_of(tenant)) == [DirtyRun(tenant, "r", 7)]
        self.tree.clear(DirtyRun(tenant, "r", 8))
        assert list(self.tree.dirty_of(tenant)) == []
        self.tree.clear(DirtyRun(tenant, "r", 8))

    def test_marks_of_all_tenants_are_found_and_a_tenants_own_apart(self, tenant: str) -> None:
        own = {DirtyRun(tenant, f"r{number}", number) for number in range(20)}
        other = DirtyRun(tenant + "x", "r", 1)
        for run in own | {other}:
            self.tree.mark_dirty(run)
        assert set(self.tree.dirty_of(tenant)) == own
        tenants = list(self.tree.dirty_tenants())
        assert {tenant, other.tenant} <= set(tenants)
        assert len(tenants) == len(set(tenants))
        for run in own | {other}:
            self.tree.clear(run)

    def test_past_its_deadline_nobody_looks_for_marks(self, tenant: str) -> None:
        mark = DirtyRun(tenant, "r", 1)
        self.tree.mark_dirty(mark)
        passed = Deadline(0)
        assert (list(self.tree.dirty_tenants(passed)), list(self.tree.dirty_of(tenant, passed))) == ([], [])
        self.tree.clear(mark)

    def test_tenants_behind_one_with_many_marks_are_found_whatever_their_names(
        self, tenant: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """More marks of one tenant than one look reads, in every shard, and names that sort right around its own."""
        names = [tenant + end for end in ("", "!", "{", "|", "}", "~", "z", "\U0010ffff")]
        monkeypatch.setattr("factbook.adapters.log.dynamodb_tree.MARKS_READ", 3)
        marks = [DirtyRun(tenant, f"r{number}", 1) for number in range(100)]
        marks += [DirtyRun(name, f"r{number}", 1) for name in names for number in range(4)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.tree.mark_dirty, marks))
        found = [name for name in self.tree.dirty_tenants() if name.startswith(tenant)]
        assert sorted(found) == sorted(names)
        assert len(list(self.tree.dirty_of(tenant))) == 100
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.tree.clear, marks))

    def test_notes_are_kept_once_and_listed_newest_first(self, tenant: str) -> None:
        notes = [PublishedNote(size, f"note {size}", "vkey", AT.format(size)) for size in (1, 9, 10)]
        for note in notes:
            self.tree.keep_note(tenant, note)
        self.tree.keep_note(tenant, PublishedNote(9, "another", "vkey", AT.format(0)))
        assert self.tree.notes(tenant, 100, 10) == notes[::-1]
        assert self.tree.notes(tenant, 10, 1) == [notes[1]]


class TreePagesContract(TreeStoreContract):
    """What takes hundreds of leaves: not for a store that copies all its tables at every transaction."""

    def test_pages_of_256_leaves_join_without_a_seam(self, tenant: str) -> None:
        leaves = self.grow(tenant, 600)
        assert self.tree.leaves(tenant, 250, 300) == leaves[250:550]
        assert self.tree.leaves(tenant, 500, 300) == leaves[500:]
        hashes = [leaf_hash(leaf.data) for leaf in leaves]
        assert [self.tree.hashes(tenant, 0, page) for page in range(4)] == [
            hashes[:256], hashes[256:512], hashes[512:], [],
        ]  # fmt: skip

    def test_a_node_is_kept_when_256_leaves_are_complete(self, tenant: str) -> None:
        leaves = self.grow(tenant, 520)
        roots = []
        for start in (0, 256):
            edge = Edge()
            for leaf in leaves[start : start + 256]:
                edge, _ = edge.append(leaf_hash(leaf.data))
            roots.append(edge.root())
        assert self.tree.hashes(tenant, 1, 0) == roots


class CheckpointStoreContract:
    """Subclasses give `published`."""

    published: CheckpointStore

    def test_nothing_is_published_at_first(self, tenant: str) -> None:
        assert self.published.newest(tenant) is None

    def test_the_newest_note_is_that_of_the_largest_tree(self, tenant: str) -> None:
        for size in (1, 10, 9, 100):
            self.published.publish(tenant, size, f"note — {size}")
            self.published.publish(tenant + "x", 1000, "other")
        assert self.published.newest(tenant) == "note — 100"

    def test_a_note_can_be_published_again_but_never_replaced(self, tenant: str) -> None:
        self.published.publish(tenant, 1, "one")
        self.published.publish(tenant, 1, "one")
        with pytest.raises(NoteConflict):
            self.published.publish(tenant, 1, "another")
        assert self.published.newest(tenant) == "one"

    def test_tenants_whose_names_begin_alike_are_apart(self, tenant: str) -> None:
        self.published.publish(f"{tenant}/a", 5, "a")
        assert self.published.newest(tenant) is None

    def test_of_parallel_publications_of_one_size_one_stands(self, tenant: str) -> None:
        def publish(name: str) -> str | None:
            try:
                self.published.publish(tenant, 1, name)
            except NoteConflict:
                return None
            return name

        names = [str(uuid.uuid4()) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            won = [name for name in pool.map(publish, names) if name]
        assert won == [self.published.newest(tenant)]
