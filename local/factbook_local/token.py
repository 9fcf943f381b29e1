"""Make a tenant's administrator token in a deployed service's access table.

For the first token of a tenant: every later one is made through the API. Uses the AWS credentials of the shell.
"""

import argparse
import uuid

from factbook.api.access.authentication import new_secret
from factbook.settings import Settings
from factbook.wiring.services import Services, ensure_admin_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", required=True, help="the access table: an output of the stack")
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--user", default="admin", help="who holds the token (default: admin)")


def run(arguments: argparse.Namespace) -> int:
    services = Services(Settings(access_table=arguments.table))
    print(ensure_admin_token(services, arguments.tenant, uuid.uuid4().hex[:16], new_secret(), arguments.user))
    return 0
