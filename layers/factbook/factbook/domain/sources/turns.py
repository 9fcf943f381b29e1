"""Whose turn it is."""

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

Item = TypeVar("Item")


def taking_turns(items: Sequence[Item], owner: Callable[[Item], str]) -> list[Item]:
    """The same items: each owner's first, then each one's second … An owner's own stay in their order."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(owner(item), []).append(item)
    rounds = zip_longest(*groups.values(), fillvalue=None)
    return [item for item in chain.from_iterable(rounds) if item is not None]
