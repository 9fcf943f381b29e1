"""The ports of the sources use cases, as bundles."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from factbook.ports.sources.handlers import Handlers
from factbook.ports.sources.stores import Circuits, DeadLetters, Leases
from factbook.usecases.facts.ports import FactPorts


def _untold(_: str, __: Exception) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class StatePorts:
    """The ports of saying how refreshing goes."""

    facts: FactPorts
    handlers: Handlers
    circuits: Circuits


@dataclass(frozen=True)
class RefreshPorts:
    """The ports of refreshing one fact."""

    facts: FactPorts
    handlers: Handlers
    leases: Leases
    circuits: Circuits
    dead_letters: DeadLetters
    draw: Callable[[], float] = random.random
    """Evenly from [0, 1)."""
    pause: Callable[[float], None] = time.sleep
    unforeseen: Callable[[str, Exception], None] = _untold
    """Hears of the id of a fact and what went wrong that nobody has foreseen."""
