"""What a verifier can find, and the exit code of each: 1 tampered, 2 incomplete, 3 unsupported (0 is: it holds)."""

from typing import ClassVar


class Finding(Exception):
    """Why a log does not hold, and where: the run and the sequence of the entry, or the line of the file."""

    code: ClassVar[int]

    def __init__(self, why: str, *, run: str | None = None, sequence: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.run = run
        self.sequence = sequence


class Tampered(Finding):
    """What is there contradicts what was signed or chained."""

    code = 1


class Incomplete(Finding):
    """Nothing contradicts, but what would prove the rest is missing."""

    code = 2


class Unsupported(Finding):
    """Written in a format this verifier does not know."""

    code = 3
