"""What the routes of erasures, and the events of the erase function, work with."""

from typing import Protocol

from factbook.ports.erasure.records import ErasureStore
from factbook.ports.erasure.work import WorkQueue
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.receipts import ReceiptPorts
from factbook.usecases.erasure.replaying import ReplayPorts


class ErasureServices(Protocol):
    @property
    def records(self) -> ErasureStore: ...

    @property
    def queue(self) -> WorkQueue: ...

    @property
    def requesting(self) -> ErasurePorts: ...

    @property
    def working(self) -> ErasurePorts: ...

    @property
    def receipts(self) -> ReceiptPorts: ...

    @property
    def replaying(self) -> ReplayPorts: ...
