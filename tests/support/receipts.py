"""A log in which erasures are stated and signed for, in memory."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.log.notes import NoteKey
from factbook.domain.strict_json import Json
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import Erasure
from factbook.ports.log.checkpoints import DirtyRun, PublishedNote
from factbook.usecases.erasure.receipts import ReceiptPorts, receipt_of
from factbook.usecases.erasure.stating import SIGNING_SECONDS, StatingPorts, state_erasure
from factbook.usecases.log.appending import LogWriter, Request, append_as
from factbook.usecases.log.checkpoints import HOWEVER_LONG, CheckpointPorts, checkpoint_tenant
from factbook.usecases.log.sealing import Vault
from factbook.verify.notes import read_key
from factbook.verify.receipt import ReceiptVerdict, judge_receipt
from support.log_fakes import FakeCheckpoints, FakeKeys, FakeLog, FakeTree, FakeWrapper
from support.logs import StandingClock
from support.principals import principal

ASKED, DONE = "2026-01-01T00:00:00.000Z", "2026-01-01T00:01:30.000Z"
ANN = Erasure(
    id="0d9a4c6e-6f1f-4a55-9c61-3a1d5b7f0001",
    tenant="acme",
    selector_kind="participant",
    selector=None,
    requested_by="user:admin",
    created_at=ASKED,
    status="running",
    counts={"facts": 12, "revisions": 31, "blobs": 0, "keys": 2},
    selector_hmac="ab" * 32,
    key_id="k1",
)


class Signer:
    def __init__(self, name: str = "factbook.test") -> None:
        self._private = Ed25519PrivateKey.generate()
        self.key = NoteKey(name, self._private.public_key().public_bytes_raw())

    def sign(self, text: bytes) -> bytes:
        return self._private.sign(text)


@dataclass
class StatingService:
    """One deployment's log; `asked` counts checkpoints asked for by the service."""

    folder: Path
    signer: Signer = field(default_factory=Signer)
    log: FakeLog = field(default_factory=FakeLog)
    tree: FakeTree = field(default_factory=FakeTree)
    published: FakeCheckpoints = field(default_factory=FakeCheckpoints)
    asked: int = 0
    refuses: Exception | None = None

    @property
    def vkey(self) -> str:
        return self.signer.key.vkey

    def writer(self, log: Any = None) -> LogWriter:
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        return LogWriter(log or self.log, vault, StandingClock(), pause=lambda _: None)

    def ports(self, log: Any = None, *, searched: bool = False) -> StatingPorts:
        return StatingPorts(self.writer(log), self.tree, self, searched)

    def make(self, tenant: str, run_ids: Sequence[str]) -> PublishedNote | None:
        """CheckpointRequests."""
        self.asked += 1
        if self.refuses is not None:
            raise self.refuses
        return self.checkpoint(tenant, *run_ids)

    def checkpoint(self, tenant: str, *runs: str) -> PublishedNote | None:
        work = CheckpointPorts(self.log, self.tree, self.published, self.signer, StandingClock())
        marks = [DirtyRun(tenant, run, HOWEVER_LONG) for run in (*runs, "other")]
        return checkpoint_tenant(work, tenant, marks).note

    def append(self, run: str, payload: Any, tenant: str = "acme") -> None:
        admin = principal(tenant, "admin", admin=True)
        append_as(self.writer(), admin, run, [Request("event-emitted", payload)])

    def state(self, erasure: Erasure = ANN) -> Erasure:
        """The record as it is kept once the erasure is stated; nothing signs for that yet."""
        stated = state_erasure(self.ports(), erasure, DONE, Deadline(SIGNING_SECONDS))
        return replace(
            erasure, status="completed", entry_id=stated.entry_id, completed_at=stated.completed_at
        )

    def receipt(self, erasure: Erasure = ANN) -> Json:
        """Of an erasure that is stated and signed for by now."""
        done = self.state(erasure)
        self.checkpoint(erasure.tenant, "_erasures")
        return receipt_of(ReceiptPorts(self.log, self.tree), done)

    def judge(self, receipt: Any, vkey: str | None = None) -> ReceiptVerdict:
        return judged(self.folder, json.dumps(receipt), vkey or self.vkey)


def judged(folder: Path, text: str | bytes, vkey: str) -> ReceiptVerdict:
    path = folder / "receipt.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return judge_receipt(path, read_key(vkey))
