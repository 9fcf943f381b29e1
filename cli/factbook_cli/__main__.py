"""`python -m factbook_cli`, and the command as it is installed."""

import sys  # and nothing that takes time to load: Ctrl-C is heard from `start` on

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes after Ctrl-C and after SIGTERM, as shells have them."""


def start() -> int:
    """The command line, from its first import on. Whatever ends it, what it had begun to write is removed."""
    try:
        import signal

        signal.signal(signal.SIGTERM, _end)
        from factbook_cli.main import main

        return main()
    except KeyboardInterrupt:
        print("factbook: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _end(*_: object) -> None:
    sys.exit(TERMINATED)


if __name__ == "__main__":
    sys.exit(start())
