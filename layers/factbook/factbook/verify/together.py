"""Follows many entries of a run together: the checks of `chain`, each made of all lines at once and not of one after another.

What is constant in a line is written down as it must be, what is not is taken out of the line where it must stand; both are
joined over all lines and compared. Pieces of one length that are equal when joined are equal each: a line that is too
short makes a shorter whole. What is not taken here, `Chain.follow` judges and explains.
"""

import re
from collections.abc import Callable
from hashlib import sha256
from itertools import islice, takewhile
from operator import getitem, itemgetter, lt

from .chain import (
    CAUSE_DIGITS,
    DIGITS,
    ENTRY,
    FORMAT,
    HASH_END,
    HEAD,
    HEX,
    INSTANT,
    KIND,
    NONCE_DIGITS,
    PLAIN_AT,
    PREV,
    STAMP,
    TAIL,
    ZERO,
    Chain,
    cause_digits,
)

MANY = 128
"""Lines that are compared at once: enough of them to share its cost, and few enough to stay in a processor's cache."""
MOST_ACTORS = 16
"""Actors that are recognised at a glance. Of another, the one that was learnt first is forgotten."""

_OPENING = re.compile(
    rb'","f":"%b",(?:"cause":"([A-Za-z0-9._:@~-]+)",)?"entry":(%b)'
    % (re.escape(FORMAT.encode()), HEAD.pattern)
)
"""What stands between an entry's hash and its run: a cause that needs no escape, and where the stored text begins."""

_NUMBERS = [b"%d" % number for number in range(1000)]
_LAST_DIGITS = [b"%03d" % number for number in range(1000)]
_INSTANT = INSTANT + b"}\n"
_LINE_TAIL = len(_INSTANT)

_text_of = itemgetter(slice(PLAIN_AT, -2))
_instant_of = itemgetter(slice(-_LINE_TAIL, None))
_nonce_of = itemgetter(slice(-NONCE_DIGITS - len(KIND), -len(KIND)))
_digest = type(sha256()).digest

Causes = dict[int, re.Match[bytes]]
"""Of lines with a cause, by their place."""


class Openings:
    """How lines of entries without a cause go on behind their hash, up to the run: one for each actor."""

    def __init__(self) -> None:
        self._seen: list[bytes] = []
        # Those that are told apart by how they begin, as far as the shortest of them goes. Another is read each time.
        self._known: dict[bytes, bytes] = {}
        self._key: Callable[[bytes], bytes] = itemgetter(slice(0))

    def of(self, lines: list[bytes], *, guess: bool) -> tuple[list[bytes], Causes]:
        """Each line's, up to the first line that is no entry, and those with a cause.

        A guess may be wrong: an actor that was not seen before may begin as one that is known.
        """
        found: list[bytes] = []
        causes: Causes = {}
        while True:
            rest = islice(lines, len(found), None)
            if guess:
                guessed = map(self._known.get, map(self._key, rest))
                found += takewhile(bool, guessed)  # type: ignore[arg-type]
            if len(found) == len(lines) or (match := _OPENING.match(lines[len(found)], HASH_END)) is None:
                return found, causes
            if match[1] is None:
                self._learn(match[0])
            else:
                causes[len(found)] = match
            found.append(match[0])

    def _learn(self, opening: bytes) -> None:
        if opening in self._seen:
            return
        self._seen = [*self._seen, opening][-MOST_ACTORS:]
        known = sorted(self._seen, key=len)
        while len({each[: len(known[0])] for each in known}) < len(known):
            del known[0]  # the others are not told apart as far as it goes
        length = len(known[0])
        self._known = {each[:length]: each for each in known}
        self._key = itemgetter(slice(HASH_END, HASH_END + length))


def follow_together(chain: Chain, openings: Openings, lines: list[bytes], start: int) -> int:
    """How many lines from `start` on are entries of an export that hold; the chain stands behind them then."""
    at = start
    begun = bool(chain.middle)
    if not begun and start < len(lines) and (match := _OPENING.match(lines[start], HASH_END)) is not None:
        chain.middle = chain.middle_of(lines[start][match.start(2) : -2])
    while chain.middle and at < len(lines):
        taken = _follow_some(chain, openings, lines[at : at + MANY])
        at += taken
        if taken == 0:
            break
    if not begun and at == start:
        chain.middle = b""
    return at - start


def _follow_some(chain: Chain, openings: Openings, lines: list[bytes]) -> int:
    """How many of these lines hold that come before the first other one. Where one fails, those before it by halves."""
    first = chain.sequence + 1
    end = 10 if first < 10 else 100 if first < 100 else 1000 * (first // 1000 + 1)
    for guess in (True, False):
        found, causes = openings.of(lines[: end - first], guess=guess)
        count = len(found)
        if count and _follow_alike(chain, lines[:count], found, causes):
            return count
    while count:
        count //= 2
        causes = {place: cause for place, cause in causes.items() if place < count}
        if count and _follow_alike(chain, lines[:count], found[:count], causes):
            break
    return count


def _follow_alike(chain: Chain, lines: list[bytes], openings: list[bytes], causes: Causes) -> bool:
    """Whether all of these lines hold, whose numbers have as many digits."""
    first, count = chain.sequence + 1, len(lines)
    thousands = b"%d" % (first // 1000) if first >= 1000 else b""
    numbers = (_LAST_DIGITS if thousands else _NUMBERS)[first % 1000 :][:count]
    texts, rests = list(map(_text_of, lines)), [KIND] * count
    for place, cause in causes.items():
        texts[place] = lines[place][cause.start(2) : -2]
        rests[place] = cause_digits(cause[1].decode()).encode() + KIND
    digests = b"".join(map(_digest, map(sha256, texts))).hex(" ", 32).encode().split()

    # How lines end: the hash before, run and scope, number, instant.
    middle = chain.middle + thousands
    end = len(PREV) + len(ZERO) + len(middle) + len(numbers[0]) + len(STAMP) + _LINE_TAIL
    pieces = [PREV, b"", middle, b"", STAMP] * count
    pieces[1::5], pieces[3::5] = [chain.digest, *digests[:-1]], numbers
    if b"".join(map(itemgetter(slice(-end, -_LINE_TAIL)), lines)) != b"".join(pieces):
        return False
    instants = list(map(_instant_of, lines))
    if b"".join(instants).translate(DIGITS) != _INSTANT * count:
        return False
    if not (instants[0] > chain.instant and all(map(lt, instants, instants[1:]))):
        return False

    # How they begin: the hash, frame and actor, run, number, nonce.
    run = chain.prefix + thousands
    length = HASH_END + len(run) + len(numbers[0]) + 1 + NONCE_DIGITS + len(KIND)
    if openings.count(openings[0]) == count and not causes:
        begins = list(map(itemgetter(slice(length + len(openings[0]))), lines))
    else:
        lengths = [length + len(opening) for opening in openings]
        for place in causes:
            lengths[place] += CAUSE_DIGITS
        begins = list(map(getitem, lines, map(slice, lengths)))
    nonces = list(map(_nonce_of, begins))
    for place in causes:
        nonces[place] = begins[place][-NONCE_DIGITS - len(rests[place]) : -len(rests[place])]
    pieces = [ENTRY, b"", b"", run, b"", b":", b"", b""] * count
    pieces[1::8], pieces[2::8], pieces[4::8], pieces[6::8], pieces[7::8] = (
        digests,
        openings,
        numbers,
        nonces,
        rests,
    )
    if b"".join(begins) != b"".join(pieces):
        return False
    if b"".join(nonces).translate(HEX) != b"0" * (NONCE_DIGITS * count):
        return False
    chain.sequence, chain.digest, chain.instant = first + count - 1, digests[-1], instants[-1][:TAIL]
    return True
