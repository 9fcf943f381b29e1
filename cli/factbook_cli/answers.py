"""Answers of the service, read as what they are: text from elsewhere, which may be anything."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from factbook_cli.errors import CommandError


class UnexpectedAnswer(CommandError):
    """The answer has not the form that this command works with."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The service's answer is not what this command expects: {what}.")


@contextmanager
def expected(what: str) -> Iterator[None]:
    """Turn whatever working with an answer raises into UnexpectedAnswer; `what` names the answer."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UnexpectedAnswer(f"{what} ({type(error).__name__})") from error


def shown(text: object) -> str:
    """Text of the service for a terminal: without control characters, which could write anywhere on it."""
    kept = (char if char == "\n" or char.isprintable() else "?" for char in str(text))
    return "".join(kept)


def number(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnexpectedAnswer(f"{what} is no number")
    return value


def cursors(page_of: Callable[[str | None], Any]) -> Iterator[Any]:
    """The pages of a list, each by the cursor of the one before. Raises UnexpectedAnswer for a cursor that comes again."""
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        page = page_of(cursor)
        yield page
        with expected("a page of a list"):
            if not page["hasMore"]:
                return
            cursor = str(page["nextCursor"])
        if cursor in seen:
            raise UnexpectedAnswer("a list goes round in a circle")
        seen.add(cursor)
