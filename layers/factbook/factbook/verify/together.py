"""Follows many lines together: the checks of `chain`, each made of all entries at once and not of one after another.

What is constant in a line is written down as it must be, what is not is taken out of the line where it must stand; both are
joined over all lines and compared. Pieces of one length that are equal when joined are equal each: a line that is too
short makes a shorter whole. Lines of several runs are compared at once, with the lines that begin a run and the leaves
between them, so that a short run costs little more than its entries. What is not taken here, `Chain.follow` and `exports`
judge and explain.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from operator import getitem, itemgetter, lt
from typing import Any

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
)
from .leaves import name_of_leaf

MANY = 512
"""Lines that are compared at once: enough of them to share its cost, and few enough to stay in a processor's cache."""
MOST_ACTORS = 16
"""Actors that are recognised at a glance. Of another, the one that was learnt first is forgotten."""
MOST_LENGTHS = 64
"""Lengths of runs and scopes for which it is kept where lines are cut."""

_FRAME = b'","f":"%b",' % FORMAT.encode()
_CAUSED, _CAUSE_OVER = _FRAME + b'"cause":"', b'",'
_CAUSE_AT = HASH_END + len(_CAUSED)
_AROUND_CAUSE = len(_CAUSED) + len(_CAUSE_OVER) - len(_FRAME)
_OPENING = re.compile(
    rb'","f":"%b",(?:"cause":"([A-Za-z0-9._:@~-]+)",)?("entry":%b)'
    % (re.escape(FORMAT.encode()), HEAD.pattern)
)
"""What stands between an entry's hash and its run: a cause that needs no escape, and where the stored text begins."""
_OF_CAUSES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@~-"
_RUN_LINE = re.compile(rb'\{"run":"([A-Za-z0-9._:@~-]+)"\}\n')

# A number as it stands behind a run, and with what stands behind it in an entry and before the hash in the next one.
_WHOLE, _LAST = [b"%d" % each for each in range(1000)], [b"%03d" % each for each in range(1000)]
_IN_ID = [each + b":" for each in _WHOLE], [each + b":" for each in _LAST]
_IN_PLACE = [each + STAMP + PREV for each in _WHOLE], [each + STAMP + PREV for each in _LAST]

_END = b"}\n"
_INSTANT = INSTANT + _END
_LINE_TAIL = len(_INSTANT)
_PLAIN = slice(PLAIN_AT, -len(_END))
_NEXT = KIND + ENTRY
_AROUND_RUN = HASH_END + len(_FRAME) + len(":") + NONCE_DIGITS + len(KIND)
_AROUND_MIDDLE = len(PREV) + len(ZERO) + len(STAMP) + _LINE_TAIL

_instant_of = itemgetter(slice(-_LINE_TAIL, None))
_nonce_of = itemgetter(slice(-NONCE_DIGITS - len(KIND), -len(KIND)))
_CAUSED_NONCE = slice(-NONCE_DIGITS - CAUSE_DIGITS - len(KIND), -CAUSE_DIGITS - len(KIND))
_digest = type(sha256()).digest


@dataclass(slots=True)
class Place:
    """Where in a log one stands, and what has led there."""

    chain: Chain
    anchored: int = -1
    """The sequence of the run's last entry that a leaf commits to."""
    entries: int = 0
    runs: int = 0
    """Runs that were begun."""
    newer: int = 0
    """Entries behind the last leaf of a run that is over."""
    leaves: list[bytes] = field(default_factory=list)
    """What names each leaf that was met."""


Cuts = list[Callable[[bytes], slice | None]]


class Openings:
    """How stored texts begin, up to the run: one for each actor. With what stands before it in a line of an export."""

    def __init__(self) -> None:
        self._seen: list[bytes] = []
        # Those that are told apart by how they begin, as far as the shortest of them goes. Another is read each time.
        self._known: dict[bytes, bytes] = {}
        self._length = 0
        self._key: Callable[[bytes], bytes] = itemgetter(slice(0))
        self._cuts: dict[int, Cuts] = {}

    def guess(self, lines: list[bytes]) -> list[bytes | None]:
        """Each line's, and None of one that is no entry, or has a cause.

        It may be wrong: an actor that was not seen before may begin as one that is known.
        """
        return list(map(self._known.get, map(self._key, lines)))

    @property
    def behind(self) -> tuple[Callable[[bytes], bytes | None], int]:
        """What gives the one that begins so, or None, and from how many bytes: for lines that have a cause before it."""
        return self._known.get, self._length

    def read(self, line: bytes) -> tuple[bytes, bytes] | None:
        """A line's, and the entry's cause, empty when it has none; None of a line that is laid out otherwise."""
        match = _OPENING.match(line, HASH_END)
        if match is None:
            return None
        self._learn(match[2])
        return match[2], match[1] or b""

    def cuts(self, length: int) -> Cuts:
        """Where the beginnings of lines end whose run has this length: for numbers of 1, 2 and 3 digits, for each opening."""
        cuts = self._cuts.get(length)
        if cuts is None:
            if len(self._cuts) >= MOST_LENGTHS:
                self._cuts.clear()
            cuts = self._cuts[length] = [
                {each: slice(_AROUND_RUN + length + digits + len(each)) for each in self._seen}.get
                for digits in (1, 2, 3)
            ]
        return cuts

    def _learn(self, opening: bytes) -> None:
        if opening in self._seen:
            return
        self._seen = [*self._seen, opening][-MOST_ACTORS:]
        known = sorted(self._seen, key=len)
        while len({each[: len(known[0])] for each in known}) < len(known):
            del known[0]  # the others are not told apart as far as it goes
        self._length = length = len(known[0])
        self._known = {each[:length]: each for each in known}
        begin = HASH_END + len(_FRAME)
        self._key = itemgetter(slice(begin, begin + length))
        self._cuts = {}


@lru_cache(maxsize=1024)
def _text_behind(length: int) -> slice:
    """The stored text behind a cause of this length."""
    return slice(PLAIN_AT + _AROUND_CAUSE + length, -len(_END))


@lru_cache(maxsize=1024)
def _up_to(length: int) -> slice:
    """The beginning of a line with a cause; `length`: without what stands around the cause and of it in the nonce."""
    return slice(length + _AROUND_CAUSE + CAUSE_DIGITS)


@lru_cache(maxsize=MOST_LENGTHS)
def _cuts_before_instants(length: int) -> list[slice]:
    """Where the ends of lines begin, for each number below 1000; `length`: of what stands around the number."""
    cuts = [slice(-length - digits, -_LINE_TAIL) for digits in (1, 2, 3)]
    return cuts[:1] * 10 + cuts[1:2] * 90 + cuts[2:] * 900


def follow_together(place: Place, openings: Openings, lines: list[bytes], start: int, *, runs: bool) -> int:
    """How many lines from `start` on hold, entries and with `runs` what stands between those; `place` is behind them then."""
    at = start
    while at < len(lines):
        taken = _follow_some(place, openings, lines[at : at + MANY], runs=runs)
        at += taken
        if taken == 0:
            break
    return at - start


def _follow_some(place: Place, openings: Openings, lines: list[bytes], *, runs: bool) -> int:
    """How many of these lines hold that come before the first other one. Where one fails, those before it by halves."""
    count = 0
    for guess in (True, False):
        walk = _Walk(place, openings, lines, runs=runs, guess=guess)
        count = walk.taken
        if count and walk.holds():
            walk.end(place)
            return count
    while count:
        count //= 2
        walk = _Walk(place, openings, lines[:count], runs=runs, guess=False)
        if walk.taken and walk.holds():
            walk.end(place)
            return walk.taken
    return 0


class _Walk:
    """Some lines as far as they are laid out as an export's, and what each entry must be where it stands."""

    def __init__(
        self, place: Place, openings: Openings, lines: list[bytes], *, runs: bool, guess: bool
    ) -> None:
        self.taken = self._count = 0
        self._chain, self._middle, self._sequence = place.chain, place.chain.middle, place.chain.sequence
        self._digest, self._instant = place.chain.digest, place.chain.instant
        self._instant += _END if self._instant else b""
        self._anchored, self._runs, self._newer = place.anchored, 0, 0
        self._leaves: list[bytes] = []
        self._known = openings
        others, end = self._find_entries(lines, runs=runs, guess=guess)
        entries = self._entries
        self._digests = _hashes(map(getitem, entries, self._texts))
        self._instants = list(map(_instant_of, entries))
        # One item for each entry; `_expect` writes down the rest.
        self._before, self._earlier = [b"", *self._digests[:-1]], [b"", *self._instants[:-1]]
        self._prefixes: list[bytes] = []
        self._middles: list[bytes] = []
        self._in_id: list[bytes] = []
        self._in_place: list[bytes] = []
        self._begin_cuts: list[Any] = []
        self._end_cuts: list[slice] = []
        self._lay_out(lines, others, end)

    def _find_entries(self, lines: list[bytes], *, runs: bool, guess: bool) -> tuple[list[int], int]:
        """The places of lines that are no entries, and of the first line that is not laid out as an export's."""
        known = self._known
        openings: list[Any] = known.guess(lines) if guess else [None] * len(lines)
        causes: dict[int, bytes] = {}
        others: list[int] = []
        at, end = -1, len(lines)
        behind, length = known.behind
        for _ in range(openings.count(None)):
            at = openings.index(None, at + 1)
            line = lines[at]
            if guess:  # an entry with a cause, by an actor that is known
                over = line.find(b'"', _CAUSE_AT)
                opening = behind(line[over + 2 : over + 2 + length])
                if opening is not None and over > _CAUSE_AT:
                    openings[at] = opening
                    causes[at - len(others)] = line[_CAUSE_AT:over]
                    continue
            if not line.startswith(ENTRY):
                if not runs:
                    end = at
                    break
                others.append(at)
                continue
            read = known.read(line)
            if read is None:
                end = at
                break
            openings[at], cause = read
            if cause:
                causes[at - len(others)] = cause
        self._entries, self._openings = _without(lines, others, end), _without(openings, others, end)
        self._texts = [_PLAIN] * len(self._entries)
        self._causes = causes
        for place, cause in causes.items():
            self._texts[place] = _text_behind(len(cause))
        return others, end

    def _lay_out(self, lines: list[bytes], others: list[int], end: int) -> None:
        """Walk up to the first line that does not follow."""
        at = begin = 0
        for other in (*others, end):
            count = other - begin
            if count:
                if not self._expect(at, count):
                    break
                at += count
            self.taken += count
            if other == end or not self._pass(lines[other]):
                break
            self.taken += 1
            begin = other + 1
        self._count = at
        at = -1
        for _ in range(self._begin_cuts.count(None)):  # of actors that are forgotten already
            at = self._begin_cuts.index(None, at + 1)
            length = len(self._openings[at]) + len(self._prefixes[at]) + len(self._in_id[at]) - len(":")
            self._begin_cuts[at] = slice(_AROUND_RUN + length)

    def _expect(self, at: int, count: int) -> bool:
        """Write down what the next entries of the run must be. False when the first one has no scope of this tenant."""
        if not self._middle:
            self._middle = self._chain.middle_of(self._entries[at][self._texts[at]])
            if not self._middle:
                return False
        self._before[at], self._earlier[at] = self._digest, self._instant
        first, self._sequence = self._sequence + 1, self._sequence + count
        while first <= self._sequence:
            thousands, number = divmod(first, 1000)
            some = min(self._sequence + 1 - first, 1000 - number)
            end, last = number + some, thousands > 0
            said = b"%d" % thousands if last else b""
            prefix, middle = self._chain.prefix + said, self._middle + said
            self._prefixes += [prefix] * some
            self._middles += [middle] * some
            self._in_id += _IN_ID[last][number:end]
            self._in_place += _IN_PLACE[last][number:end]
            cuts = _cuts_before_instants(_AROUND_MIDDLE + len(middle))
            self._end_cuts += [cuts[-1]] * some if last else cuts[number:end]
            openings, begins = self._openings, self._begin_cuts
            for of, over in zip(
                self._known.cuts(len(prefix)), (0, 0, 1000) if last else (10, 100, 1000), strict=True
            ):
                alike = min(end, over) - number
                if alike > 0:
                    begins += map(of, openings[at : at + alike])
                    at, number = at + alike, number + alike
            first += some
        self._digest, self._instant = self._digests[at - 1], self._instants[at - 1]
        return True

    def _pass(self, line: bytes) -> bool:
        """Whether a line that is no entry follows: one that begins a run, or the leaf of the entry before it."""
        if self._sequence > self._anchored:
            named = name_of_leaf(line[:-1], self._chain.prefix[:-1], self._sequence, self._digest)
            if named is not None:
                self._leaves.append(named)
                self._anchored = self._sequence
                return True
        match = _RUN_LINE.fullmatch(line)
        if match is None or self._sequence < 0 > self._anchored:
            return False
        self._newer += self._sequence - self._anchored
        self._runs += 1
        self._chain = Chain(match[1].decode(), self._chain.tenant)
        self._middle, self._sequence, self._digest, self._instant = b"", -1, ZERO, b""
        self._anchored = -1
        return True

    def holds(self) -> bool:
        """Whether every entry is what it must be."""
        count = self._count
        entries, instants = self._entries[:count], self._instants[:count]

        # How lines end: the hash before, run and scope, number, instant.
        pieces = [b""] * (3 * count)
        pieces[::3], pieces[1::3], pieces[2::3] = self._before[:count], self._middles, self._in_place
        if b"".join(map(getitem, entries, self._end_cuts)) + PREV != PREV + b"".join(pieces):
            return False
        if b"".join(instants).translate(DIGITS) != _INSTANT * count or not all(
            map(lt, self._earlier, instants)
        ):
            return False

        # How they begin: the hash, frame and cause, actor, run, number, nonce, and what the nonce has of the cause.
        frames, rests = [_FRAME] * count, [_NEXT] * count
        causes = self._causes
        if count < len(self._entries):
            causes = {place: cause for place, cause in causes.items() if place < count}
        if b"".join(causes.values()).translate(None, _OF_CAUSES):
            return False
        cuts = self._begin_cuts
        for (place, cause), digest in zip(causes.items(), _hashes(causes.values()), strict=True):
            frames[place] = _CAUSED + cause + _CAUSE_OVER
            rests[place] = digest[:CAUSE_DIGITS] + _NEXT
            cuts[place] = _up_to(cuts[place].stop + len(cause))
        begins: list[bytes] = list(map(getitem, entries, cuts))
        nonces = list(map(_nonce_of, begins))
        for place in causes:
            nonces[place] = begins[place][_CAUSED_NONCE]
        pieces = [b""] * (7 * count)
        pieces[::7], pieces[1::7], pieces[2::7] = self._digests[:count], frames, self._openings[:count]
        pieces[3::7], pieces[4::7], pieces[5::7], pieces[6::7] = self._prefixes, self._in_id, nonces, rests
        if b"".join(begins) + ENTRY != ENTRY + b"".join(pieces):
            return False
        return b"".join(nonces).translate(HEX) == b"0" * (NONCE_DIGITS * count)

    def end(self, place: Place) -> None:
        """Have the place be behind these lines."""
        place.chain = self._chain
        place.chain.go_on(self._middle, self._sequence, self._digest, self._instant[:TAIL])
        place.anchored = self._anchored
        place.entries += self._count
        place.runs += self._runs
        place.newer += self._newer
        place.leaves += self._leaves


def _without(items: list[Any], others: list[int], end: int) -> list[Any]:
    """Those before `end`, without the others."""
    left, begin = [], 0
    for other in (*others, end):
        left += items[begin:other]
        begin = other + 1
    return left


def _hashes(texts: Iterable[bytes]) -> list[bytes]:
    """The SHA-256 of each, in hex."""
    return b"".join(map(_digest, map(sha256, texts))).hex(" ", 32).encode().split()
