"""Make a tenant's administrator token in a deployed service's access table.

For the first token of a tenant: every later one is made through the API. Uses the AWS credentials of the shell.
"""

import argparse
import uuid

MAX_NAME = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stack", metavar="NAME", help="the deployed stack")
    where.add_argument("--table", metavar="NAME", help="its access table, where the stack may not be read")
    parser.add_argument("--tenant", required=True, type=_name, help="whose administrator it makes")
    parser.add_argument("--user", default="admin", type=_name, help="who holds the token (default: admin)")


def _name(text: str) -> str:
    if not 1 <= len(text) <= MAX_NAME:
        raise argparse.ArgumentTypeError(f"a name has 1 to {MAX_NAME} characters")
    return text


def run(arguments: argparse.Namespace) -> int:
    from factbook.api.access.authentication import new_secret
    from factbook.settings import Settings
    from factbook.wiring.services import Services, ensure_admin_token
    from factbook_cli.aws import aws_errors, client, stack_value

    table = arguments.table or stack_value(arguments.stack, "AccessTable")
    with aws_errors():
        services = Services(Settings(access_table=table), client=client)
        token = ensure_admin_token(
            services, arguments.tenant, uuid.uuid4().hex[:16], new_secret(), arguments.user
        )
    print(token)
    return 0
