"""Let the functions of a stack into its search domain: a role there for each, mapped to the function's own role of IAM.

CloudFormation makes a domain and names its administrator; what is inside, roles and who has them, is the domain's own
business. Takes the administrator's role of a domain that the stack made, or the one you name. May be repeated.
"""

import argparse
import json
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from factbook_cli.api import reason
from factbook_cli.errors import CommandError

TIMEOUT = urllib3.Timeout(connect=10, read=30)
INDEXES = "factbook*"
"""The alias and the indexes behind it, and no other index of the domain."""
_LOOKS_UP = (["cluster_composite_ops_ro"], ["read", "indices:admin/get"])
_CHANGES = (
    ["cluster_composite_ops"],
    [
        "crud",
        "indices:admin/get",
        "indices:admin/flush*",
        "indices:admin/forcemerge*",
        "indices:admin/refresh*",
    ],
)
_MAKES = (["cluster_composite_ops"], ["indices_all"])
ROLES = {"Retrieve": _LOOKS_UP, "Read": _LOOKS_UP, "Erase": _CHANGES, "Index": _MAKES}
"""Function → what it may do in the cluster, and with Factbook's indexes, in the words of the security plugin."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stack", metavar="NAME", required=True, help="the deployed stack")
    parser.add_argument(
        "--admin-role",
        metavar="ARN",
        help="the role of an administrator of the domain; left out, the stack's own, else the credentials of the shell",
    )


def run(arguments: argparse.Namespace) -> int:
    from factbook_cli.aws import assumed, stack_values

    values = stack_values(arguments.stack)
    url = values.get("SearchUrl") or values.get("OpenSearchUrl")
    domain = values.get("SearchDomainArn") or values.get("OpenSearchDomainArn")
    if not url or not domain:
        raise CommandError(
            f"The stack {arguments.stack} searches in no domain: its parameter Search says in what."
        )
    role = arguments.admin_role or values.get("SearchAdminRoleArn")
    ask = _Security(url, domain.split(":")[3], assumed(role) if role else None)
    for function, (cluster, indexes) in ROLES.items():
        name = f"factbook_{arguments.stack}_{function.lower()}"
        allowed = [{"index_patterns": [INDEXES], "allowed_actions": indexes}]
        ask.put(f"roles/{name}", {"cluster_permissions": cluster, "index_permissions": allowed})
        ask.put(f"rolesmapping/{name}", {"backend_roles": [values[f"{function}RoleArn"]]})
        print(f"{function}Function has the role {name}")
    return 0


class _Security:
    """The part of a domain that says who may do what."""

    def __init__(self, url: str, region: str, credentials: Any) -> None:
        self._url = f"{url.rstrip('/')}/_plugins/_security/api"
        self._region = region
        self._credentials = credentials

    def put(self, what: str, document: dict[str, Any]) -> None:
        """Raises CommandError."""
        from factbook_cli.aws import signed

        url, body = f"{self._url}/{what}", json.dumps(document).encode()
        headers = signed("es", self._region, url, method="PUT", body=body, credentials=self._credentials)
        try:
            answer = urllib3.request(
                "PUT", url, headers=headers, body=body, timeout=TIMEOUT, retries=False, redirect=False
            )
        except HTTPError as error:
            raise CommandError(
                f"{self._url} does not answer: {reason(error)}. Is the domain ready?"
            ) from error
        if answer.status in (401, 403):
            raise CommandError(
                f"{self._url} refuses the request ({answer.status}). Name the role of an administrator of the domain: --admin-role"
            )
        if answer.status not in (200, 201):
            raise CommandError(
                f"{self._url} answers {answer.status}. Is fine-grained access control on in this domain?"
            )
