"""Agent memory on serverless AWS: what operators and auditors run."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from factbook import __version__
from factbook_cli.errors import CommandError, in_plain_words

Commands = dict[str, tuple[str, str]]
COMMANDS: Commands = {
    "token": ("factbook_cli.token", "a tenant's first administrator token, in a deployed service"),
    "vkey": ("factbook_cli.vkey", "the verifier key of a deployment, for auditors"),
    "index": ("factbook_cli.index", "repair or rebuild the search index, and say how far it is"),
    "check": (
        "factbook_cli.check",
        "write, read, find, log, verify and delete in a running service, as a monitor would",
    ),
    "cost": ("factbook_cli.cost", "what a deployment costs a month, from what you do with it"),
    "refresh": ("factbook_cli.refresh", "sources of mirrored facts that failed, and their facts sent again"),
    "log": ("factbook_cli.log", "export, verify and audit the log"),
    "export": (
        "factbook_cli.tenant_export",
        "a tenant as one file: every revision, payload and log entry as stored",
    ),
    "import": (
        "factbook_cli.tenant_import",
        "the file of an exported tenant into an empty one, checked whole before",
    ),
    "erasure": ("factbook_cli.erasure", "erase, keep and replay the ledger, fetch and verify receipts"),
    "doctor": ("factbook_cli.doctor", "look at all that Factbook stands on here, and say what is wrong"),
}
"""Name → module and summary. A module has `add_arguments(parser)` and `run(arguments) -> int`, the exit code."""
UNREAD = 141
"""Exit code when nobody reads what is printed, as shells have it."""
OF_THE_REPOSITORY = ("local", "demo")
"""Commands of the local runner, which only a checkout has."""


def known_commands() -> Commands:
    """The commands of this package and, where it is there, of the local runner."""
    try:
        from factbook_local import commands as local
    except ModuleNotFoundError as missing:
        if missing.name != "factbook_local":
            raise
        return COMMANDS
    return local.COMMANDS | COMMANDS


def parser_of(commands: Commands, chosen: str | None) -> argparse.ArgumentParser:
    """The command line; only the chosen command's module is imported and adds its options."""
    parser = _Parser(prog="factbook", description=__doc__, formatter_class=_Plain)
    parser.add_argument("--version", action="version", version=f"factbook {__version__}")
    names = parser.add_subparsers(dest="name", required=True, metavar="COMMAND", title="commands")
    for name, (module, summary) in commands.items():
        own = names.add_parser(name, help=summary, formatter_class=_Plain)
        if name == chosen:
            command = importlib.import_module(module)
            own.description = command.__doc__
            command.add_arguments(own)
            own.set_defaults(perform=command.run)
    return parser


_Plain = argparse.RawDescriptionHelpFormatter


class _Parser(argparse.ArgumentParser):
    """Says in one line what cannot be read, and which command's help to ask for."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what is left over here, where the command that it was meant for is known."""
        read, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"there is no option or argument {' '.join(left)}")
        return read, left

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """What a command line asks for; its exit code. Raises KeyboardInterrupt, when all is tidied up."""
    words = list(sys.argv[1:] if argv is None else argv)
    commands, chosen = known_commands(), words[0] if words else None
    parser = parser_of(commands, chosen)
    if chosen is not None and not chosen.startswith("-") and chosen not in commands:
        parser.error(_no_command(chosen, commands))
    if chosen is not None and chosen.startswith("-") and chosen not in ("-h", "--help", "--version"):
        parser.error(f"there is no option {chosen}")
    if chosen is None:
        parser.error(f"which command? There are {', '.join(commands)}")
    arguments = parser.parse_args(words)
    try:
        code = int(arguments.perform(arguments))
        sys.stdout.flush()
        return code
    except CommandError as error:
        return _say(arguments.name, str(error), error.exit_code)
    except BrokenPipeError:  # whoever reads has enough of it, as of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except OSError as error:
        return _say(arguments.name, in_plain_words(error), 1)


def _no_command(name: str, commands: Commands) -> str:
    if name in OF_THE_REPOSITORY:
        return (
            f"no command {name!r} here: {' and '.join(OF_THE_REPOSITORY)} need the repository: make install"
        )
    return f"no command {name!r}; there are {', '.join(commands)}"


def _say(command: str, message: str, code: int) -> int:
    print(f"factbook {command}: {message}", file=sys.stderr)
    return code
