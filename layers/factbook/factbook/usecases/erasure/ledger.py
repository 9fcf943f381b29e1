"""The deployment's ledger keys as a process knows them: read once in a while, and anew for a key id it does not know."""

import time
from collections.abc import Callable, Iterable

from factbook.domain.access.erasing import Selector
from factbook.domain.erasure.ledger import KeyedHash, LedgerKeys, read_keys
from factbook.domain.errors import BadInput, StorageUnavailable
from factbook.domain.strict_json import parse_json
from factbook.usecases.caches import TrustedAnswers

TRUSTED_SECONDS = 300.0
"""For how long after a rotation a process goes on making hashes with the former key, which all find again."""

ALL = "keys"

FLAWED = (
    "The ledger's keys cannot be used, so nobody could be found again after a restore. An operator must look."
)


class Ledger:
    """Makes the keyed hashes of selectors, and tells which of them a replay can find.

    `read` gives the text of the keys' document; None where the deployment has no keys.
    """

    def __init__(self, read: Callable[[], str] | None, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._known: TrustedAnswers[str, LedgerKeys] | None = (
            None if read is None else TrustedAnswers(lambda _: _parsed(read()), TRUSTED_SECONDS, elapsed)
        )

    def hash_of(self, tenant: str, selector: Selector) -> KeyedHash | None:
        """The keyed hash that a record keeps of its selector; None where the deployment has no keys.

        Raises StorageUnavailable.
        """
        return None if self._known is None else self._known(ALL).hash_of(tenant, selector)

    def keys(self, key_ids: Iterable[str] = ()) -> LedgerKeys:
        """The keys, read anew when one of `key_ids` is not among those that this process knows. Raises StorageUnavailable."""
        if self._known is None:
            return LedgerKeys("", {})
        keys = self._known(ALL)
        if not set(key_ids) <= keys.keys.keys():
            self._known.forget()
            keys = self._known(ALL)
        return keys


def _parsed(text: str) -> LedgerKeys:
    try:
        return read_keys(parse_json(text))
    except (BadInput, ValueError) as error:
        raise StorageUnavailable(FLAWED) from error
