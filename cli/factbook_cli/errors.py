"""What ends a command with one line on standard error, and its exit code."""


class CommandError(Exception):
    """The message says what is in the way and what to do."""

    exit_code = 1


class UsageError(CommandError):
    """The command line asks for what cannot be, so nothing was begun."""

    exit_code = 2


def in_plain_words(error: OSError) -> str:
    """What the system refused, without its number; the file first where it names one."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."
