"""The `factbook` command: a registry of subcommands, each imported only when it is called.

A subcommand is a module with `add_arguments(parser)` and `run(arguments) -> int`, the exit code.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "local": ("factbook_local.local", "the service on this machine"),
    "demo": ("factbook_local.demo", "a fact's life, told over HTTP"),
    "token": ("factbook_local.token", "a tenant's first administrator token, in a deployed service"),
    "index": ("factbook_local.index_commands", "repair or rebuild the search index, and say how far it is"),
    "log": ("factbook_local.log_commands", "export, verify and audit the log"),
}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(
            "usage: factbook COMMAND …\n\n"
            + "\n".join(f"  {name:8}{text}" for name, (_, text) in COMMANDS.items())
        )
        return 0 if arguments else 2
    if arguments[0] not in COMMANDS:
        print(f"factbook: no command {arguments[0]!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(COMMANDS[arguments[0]][0])
    parser = argparse.ArgumentParser(
        prog=f"factbook {arguments[0]}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return int(module.run(parser.parse_args(arguments[1:])))


if __name__ == "__main__":
    sys.exit(main())
