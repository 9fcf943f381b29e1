"""The refresh function as a read asks it (api/sources/events.py reads the event and writes the answer)."""

from queue import Empty, SimpleQueue
from threading import Thread

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.domain.errors import StorageUnavailable
from factbook.domain.strict_json import Json


class LambdaRefresher:
    """Refresher. `function` is called with a client of its own, which waits for two seconds.

    A client's time-outs are fixed, and what is left of a reader's time is not: so the call has a thread of its own, which
    ends with the client's patience when nobody waits for it any more.
    """

    def __init__(self, function: LambdaFunction) -> None:
        self._function = function

    def refresh(self, tenant: str, fact_id: str, lease: str, seconds: float) -> None:
        ends: SimpleQueue[Exception | None] = SimpleQueue()
        event: Json = {"factbook": "refresh", "tenant": tenant, "factId": fact_id, "lease": lease}
        Thread(target=self._call, args=(event, ends), daemon=True).start()
        try:
            failed = ends.get(timeout=seconds)
        except Empty:
            raise StorageUnavailable from None
        if failed is not None:
            raise failed

    def _call(self, event: Json, ends: "SimpleQueue[Exception | None]") -> None:
        try:
            self._function.call(event)
        except Exception as error:  # noqa: BLE001 - it is its caller's
            ends.put(error)
        else:
            ends.put(None)
