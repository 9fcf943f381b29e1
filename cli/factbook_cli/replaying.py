"""Replay a ledger of any length: in requests that the service takes, each asked for again until it knows the outcome."""

import json
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factbook_cli.answers import expected, shown
from factbook_cli.api import Api
from factbook_cli.errors import UsageError

ERASURES = ("v1", "memory", "erasures")
AT_ONCE = 5_000
"""Erasures of one request: some 2 MB."""
POLL_SECONDS = 2.0
LOOKING = "still-looking"
NOTHING = "nothing-matched"


@dataclass
class Replaying:
    """One ledger under way, and what became of its erasures."""

    api: Api
    quiet: bool = False
    replayed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    unmatched: list[Any] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def run(self, ledger: Path, *, wait: bool, as_json: bool) -> int:
        """0 when all of the ledger is replayed; 1 when of some nothing could be looked for, or an erasure failed."""
        self.replay(read_ledger(ledger), wait=wait)
        if as_json:
            names = ("replayed", "restored", "unmatched", "failed")
            print(json.dumps({name: getattr(self, name) for name in names}))
        else:
            self._tell()
        lost = [each for each in self.unmatched if each["reason"] != NOTHING]
        return int(bool(lost or self.failed))

    def replay(self, entries: list[Any], *, wait: bool = True) -> None:
        for start in range(0, len(entries), AT_ONCE):
            self._replay(entries[start : start + AT_ONCE])
        if wait:
            self._await()

    def _replay(self, entries: list[Any]) -> None:
        """The same request under one key until the service has looked everywhere."""
        key = f"replay-{uuid.uuid4()}"
        while True:
            answer = self.api.post({"erasures": entries}, *ERASURES, "replay", key=key)
            with expected("what was replayed"):
                looking = sum(each["reason"] == LOOKING for each in answer["unmatched"])
                if not looking:
                    self.replayed += answer["replayed"]
                    self.restored += answer["restored"]
                    self.unmatched += answer["unmatched"]
                    return
            self._progress(f"looking for {looking:,} of {len(entries):,}")
            time.sleep(POLL_SECONDS)

    def _await(self) -> None:
        waiting = list(self.replayed)
        while waiting:
            self._progress(f"{len(waiting):,} are being erased again")
            time.sleep(POLL_SECONDS)
            records = [self.api.get(*ERASURES, each) for each in waiting]
            with expected("an erasure"):
                self.failed += [str(each["id"]) for each in records if each["status"] == "failed"]
                waiting = [
                    str(each["id"]) for each in records if each["status"] not in ("completed", "failed")
                ]

    def _tell(self) -> None:
        nothing = sum(each["reason"] == NOTHING for each in self.unmatched)
        print(
            f"{len(self.replayed):,} found and erased again, {nothing:,} of which nothing is there, "
            f"{len(self.restored):,} of these put back into the records"
        )
        for each in self.unmatched:
            if each["reason"] != NOTHING:
                print(f"{shown(each['id'])}: {shown(each['reason'])}: {shown(each.get('message', ''))}")
        for erasure in self.failed:
            print(f"{shown(erasure)}: failed; see factbook erasure status {shown(erasure)}")

    def _progress(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)


def read_ledger(path: Path) -> list[Any]:
    """The erasures of a ledger as this or the schema's own command line wrote it, or as the API answers it.

    Raises UsageError for another kind of file.
    """
    try:
        ledger = json.loads(path.read_text("utf-8"))
        entries = ledger["erasures"] if "erasures" in ledger else ledger["data"]
        if all(isinstance(each["id"], str) for each in entries):
            return list(entries)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError):
        pass
    raise UsageError(f"{path} is no ledger. Give the file that `factbook erasure export` wrote.")
