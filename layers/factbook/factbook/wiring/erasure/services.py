"""The composition root of erasures: what asks for them, what works on them, and what they leave."""

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from factbook.adapters.erasure.dynamodb_erasures import DynamoErasures
from factbook.adapters.erasure.sqs_work import SqsWork
from factbook.adapters.facts.dynamodb_erasing import DynamoFactErasing
from factbook.adapters.facts.s3_blobs import S3Blobs
from factbook.usecases.erasure.ports import TRUST_SECONDS, ErasurePorts
from factbook.usecases.erasure.receipts import ReceiptPorts
from factbook.usecases.erasure.replaying import ReplayPorts
from factbook.usecases.erasure.requesting import run_again
from factbook.wiring.erasure.ledger import LedgerServices

if TYPE_CHECKING:
    from factbook.ports.erasure.records import Erasure

REPLAYED_LATER_SECONDS = 60.0
"""Longer than the request that hands a ledger in: it walks itself as far as it comes."""


class ErasureServices:
    """Each part is made at first use. `services`: those of the function, of which an erasure uses nearly all."""

    def __init__(self, services: Any, client: Any) -> None:
        self._services = services
        self._client = client

    @cached_property
    def records(self) -> DynamoErasures:
        return DynamoErasures(self._client("dynamodb"), self._services.settings.access_table)

    @cached_property
    def queue(self) -> SqsWork:
        return SqsWork(self._client("sqs"), self._services.settings.erasure_queue)

    @cached_property
    def requesting(self) -> ErasurePorts:
        wired, settings = self._services, self._services.settings
        dynamodb = self._client("dynamodb")
        return ErasurePorts(
            records=self.records,
            queue=self.queue,
            facts=wired.memory,
            walk=wired.facts.walk,
            erasing=DynamoFactErasing(dynamodb, settings.facts_table, wired.memory.facts),
            blobs=S3Blobs(self._client("s3"), settings.blobs_bucket),
            log=wired.logs.store,
            keys=wired.logs.keys,
            index=wired.searching.index if settings.searches else None,
            jobs=wired.jobs,
            clock=wired.clock,
            hash_of=self._ledger.ledger.hash_of,
            state=self._ledger.state,
            settle_seconds=settings.settle_seconds,
        )

    @property
    def working(self) -> ErasurePorts:
        return self.requesting

    @property
    def receipts(self) -> ReceiptPorts:
        return self._ledger.receipts

    @cached_property
    def replaying(self) -> ReplayPorts:
        return self._ledger.replaying(
            self.records,
            self._services.facts.walk,
            self._services.jobs,
            self._again,
            lambda tenant: self.queue.send_replays(tenant, REPLAYED_LATER_SECONDS),
            lambda: time.sleep(TRUST_SECONDS),
        )

    def _again(self, erasure: "Erasure") -> None:
        run_again(self.requesting, erasure)

    @cached_property
    def _ledger(self) -> LedgerServices:
        wired = self._services
        return LedgerServices(wired.settings, self._client, wired.clock, wired.logs)
