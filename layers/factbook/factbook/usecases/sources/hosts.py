"""Asking a host: politely, and not at all while its circuit is open."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from zlib import crc32

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.domain.facts.freshness import Failure
from factbook.domain.sources.circuits import CLOSED, Circuit
from factbook.ports.sources.handlers import Answer
from factbook.usecases.sources.ports import RefreshPorts

PLACES = 5
"""Asks of one host at once, by all processes and tenants together. One place is none of a tenant's, each minute another:
whoever has a slow page of a host asked all the time leaves something to the others.
"""
PLACE_SECONDS = 30.0
"""A place whose process died is free again after this; no ask takes longer."""
REST_SECONDS = 0.25
"""A place rests after each ask: so many asks a second at most are PLACES / REST_SECONDS."""
_FAULTS = (StorageUnavailable, Throttled)


class AskFailed(Exception):
    """A source gave nothing that its fact can take. `detail`: in the handler's words; `wait`: seconds that it asked for.

    `answered`: it may be asked, and what it answered is nothing that a fact may have.
    """

    def __init__(
        self, why: Failure, detail: str, wait: float | None = None, *, answered: bool = False
    ) -> None:
        super().__init__(detail)
        self.answered = answered
        self.why = why
        self.detail = detail
        self.wait = wait


class CircuitOpen(Exception):
    """The host is not asked before `until`."""

    def __init__(self, until: str) -> None:
        super().__init__(until)
        self.until = until


class NoPlace(Exception):
    """As many ask the host as may at once."""


@dataclass(frozen=True)
class Host:
    """A host as one tenant knows it."""

    tenant: str
    name: str


def asked_in_turn(
    ports: RefreshPorts, host: Host, ask: Callable[[], Answer], *, mended: bool = False
) -> Answer:
    """Ask the host when its circuit lets that through and it has a place free. Raises CircuitOpen, NoPlace, what `ask` does.

    `mended`: as somebody says, so an open circuit counts for nothing.
    """
    now = ports.facts.clock.now()
    known = ports.circuits.circuit(host.tenant, host.name)
    state = "closed" if mended else known.state(now)
    if known.until is not None and state == "open":
        raise CircuitOpen(known.until)
    with a_place(ports, host):
        decides = state == "half-open"
        if decides:
            known = _probed(ports, host, known, now)
        return _counted(ports, host, known, ask, decides=decides)


@contextmanager
def unless_it_runs_out(ports: RefreshPorts, whose: str) -> Iterator[None]:
    """What was taken for a while may stay so: giving it back keeps nothing from being answered."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - what was done is done, whatever the store says of what comes after it
        ports.unforeseen(whose, error)


def _probed(ports: RefreshPorts, host: Host, known: Circuit, now: str) -> Circuit:
    """The circuit while this ask decides about it. Raises CircuitOpen when another's does."""
    probed = known.probed(now)
    if not ports.circuits.keep(host.tenant, host.name, known, probed):
        raise CircuitOpen(probed.until or now)
    return probed


@contextmanager
def a_place(ports: RefreshPorts, host: Host) -> Iterator[None]:
    """One of the host's places, for who asks it or is led to it. Raises NoPlace."""
    owner = secrets.token_hex(8)
    taken = next(
        (each for each in _places(ports, host) if ports.leases.take(each, owner, PLACE_SECONDS)), None
    )
    if taken is None:
        raise NoPlace
    try:
        yield
    finally:
        with unless_it_runs_out(ports, host.name):
            ports.leases.give_back(taken, owner, REST_SECONDS)


def _places(ports: RefreshPorts, host: Host) -> Iterator[tuple[str, ...]]:
    """Those that the tenant may have now, from a random one on."""
    minute = ports.facts.clock.now()[:16]
    spared = crc32("|".join((host.tenant, host.name, minute)).encode()) % PLACES
    first = int(ports.draw() * PLACES)
    for number in range(PLACES):
        place = (first + number) % PLACES
        if place != spared:
            yield "place", host.name, str(place)


def _counted(
    ports: RefreshPorts, host: Host, known: Circuit, ask: Callable[[], Answer], *, decides: bool
) -> Answer:
    """What the ask gives; the circuit hears whether the host was there. An address that is refused says nothing of that."""
    try:
        answer = ask()
    except AskFailed as failed:
        if failed.why == "source-unavailable":
            _note_failure(ports, host, known, failed.wait, decides=decides)
        elif failed.answered:
            _note_answer(ports, host, known)
        raise
    _note_answer(ports, host, known)
    return answer


def _note_answer(ports: RefreshPorts, host: Host, known: Circuit) -> None:
    if known != CLOSED:
        with suppress(*_FAULTS):  # the next answer says the same
            ports.circuits.keep(host.tenant, host.name, known, CLOSED)


def _note_failure(
    ports: RefreshPorts, host: Host, known: Circuit, wait: float | None, *, decides: bool
) -> None:
    """Count one more failure, on what others have counted meanwhile."""
    with suppress(*_FAULTS):  # the next failure is counted
        for _ in range(3):
            after = known.failed(ports.facts.clock.now(), ports.draw(), wait, decides=decides)
            if after == known or ports.circuits.keep(host.tenant, host.name, known, after):
                return
            known, decides = ports.circuits.circuit(host.tenant, host.name), False
