"""Look at sources of mirrored facts that need somebody's eye, and send their facts again once that is mended.

Calls the refresh function of a deployed stack, with the AWS credentials of the shell, or of a `factbook local`.
"""

import argparse
import json

from factbook_cli.functions import CalledFunction, add_place

SUMMARIES = {
    "letters": "which sources failed for good or again and again, and why; a JSON object a line",
    "resend": "send the facts of all letters again, each at once and whatever is known of it",
    "sweep": "queue the facts that are due, as the schedule does each minute",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(SUMMARIES))
    for name, text in SUMMARIES.items():
        add_place(commands.add_parser(name, help=text, description=text), "refresh")


def run(arguments: argparse.Namespace) -> int:
    function = CalledFunction(arguments, "refresh")
    match arguments.command:
        case "letters":
            for letter in function.call("dead-letters")["letters"]:
                print(json.dumps(letter, ensure_ascii=False))
        case "resend":
            return _resend(function)
        case "sweep":
            print(f"queued: {function.call('sweep')['queued']}")
    return 0


def _resend(function: CalledFunction) -> int:
    """Until none is left; exit code 1 when some letters say of no fact: they stay, and somebody has to look at them."""
    sent = unreadable = 0
    while True:
        answer = function.call("resend")
        sent += answer["sent"]
        unreadable = max(unreadable, answer["unreadable"])
        if not answer["sent"]:
            break
    print(f"sent again: {sent}")
    if unreadable:
        print(f"letters that say of no fact: {unreadable}")
    return 1 if unreadable else 0
