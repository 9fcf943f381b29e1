"""What has the worker of erasures go on."""

from typing import Protocol


class WorkQueue(Protocol):
    """A message may be heard of twice, and a little early. Both raise Throttled, StorageUnavailable."""

    def send(self, tenant: str, erasure_id: str, after_seconds: float = 0.0) -> None:
        """Have an erasure worked on after so many seconds, at most 900."""
        ...

    def send_replays(self, tenant: str, after_seconds: float = 0.0) -> None:
        """Have a tenant's replays of ledgers worked on."""
        ...
