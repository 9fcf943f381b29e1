"""What every store of replays does."""

from dataclasses import replace

from factbook.ports.erasure.replays import LedgerEntry, Replay, ReplayStore

AT, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"


def entry(number: int, by: str = "user:admin") -> LedgerEntry:
    return LedgerEntry(f"e{number}", "user", by, "completed", AT, LATER, f"{number:064x}", "k1")


class ReplayStoreContract:
    """Subclasses give `replays`."""

    replays: ReplayStore

    def waited_for(self, limit: int = 2) -> list[str]:
        found, after = list[str](), None
        while True:
            some, after = self.replays.tenants(after, limit)
            assert len(some) <= limit
            found += some
            if after is None:
                return found

    def test_a_ledger_comes_back_as_it_was_kept_whatever_is_absent(self, tenant: str) -> None:
        bare = LedgerEntry("e2", "fact", "service:s|%~é", "running", AT)
        kept = Replay(tenant, "r1", AT, (entry(1), bare), asked_by="service:s|%~é")
        self.replays.keep(kept)

        assert self.replays.replay(tenant, "r1") == kept
        assert self.replays.replay(tenant, "r") is None
        assert self.replays.replay(tenant + "|r1", "r1") is None

    def test_a_ledger_of_ten_thousand_comes_back_in_its_order(self, tenant: str) -> None:
        kept = Replay(tenant, "r1", AT, tuple(entry(number, "user:" + "ü" * 100) for number in range(10_000)))
        self.replays.keep(kept)

        assert self.replays.replay(tenant, "r1") == kept

    def test_ids_that_begin_alike_are_apart(self, tenant: str) -> None:
        kept = [
            Replay(tenant, each, AT, (entry(number),)) for number, each in enumerate(("r", "r1", "r1|0000"))
        ]
        for each in kept:
            self.replays.keep(each)
        assert [self.replays.replay(tenant, each.id) for each in kept] == kept

    def test_an_empty_ledger_is_one_too(self, tenant: str) -> None:
        self.replays.keep(Replay(tenant, "r1", AT, ()))
        assert self.replays.replay(tenant, "r1") == Replay(tenant, "r1", AT, ())

    def test_what_waits_is_told_in_order_until_it_has_ended(self, tenant: str) -> None:
        second = Replay(tenant, "a", LATER, (entry(2),))
        first = Replay(tenant, "b", AT, (entry(1),), asked_by="user:x")
        for each in (second, first, first):
            self.replays.keep(each)
        assert self.replays.waiting(tenant) == ["b", "a"]
        assert self.replays.waiting(tenant[:-1]) == []
        assert tenant in self.waited_for()

        for _ in range(2):
            self.replays.end(replace(first, unreadable=7))
        assert self.replays.waiting(tenant) == ["a"]
        assert self.replays.replay(tenant, "b") == replace(first, ended=True, unreadable=7)
        self.replays.end(second)

        assert self.replays.waiting(tenant) == []
        assert tenant not in self.waited_for()

    def test_a_tenant_is_told_once_however_many_wait(self, tenant: str) -> None:
        for number in range(30):
            self.replays.keep(Replay(tenant, f"r{number}", AT, ()))
        others = [f"{tenant}{more}" for more in ("-", "~", "|", "é", "a")]
        for other in others:
            self.replays.keep(Replay(other, "r", AT, ()))
        for limit in (1, 2, 100):
            found = self.waited_for(limit)
            assert [found.count(each) for each in (tenant, *others)] == [1] * 6
