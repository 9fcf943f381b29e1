"""What ends a command with one line on standard error and exit code 1."""


class CommandError(Exception):
    """The message says what is in the way and what to do."""
