"""The environment of a function: what Lambda sets, what the template says, and what differs on this machine."""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from factbook.settings import misspelt, read_settings
from factbook_local.dataplane.process import CREDENTIALS, REGION
from factbook_local.limits import LIMITS
from factbook_local.stack import Function
from factbook_local.template import Template, TemplateError

_PASSED_ON = (
    "MEMORY_",
    "KINDGI_MEMORY_",
    "OPENSEARCH_",
    "FACTBOOK_BUILD",
    "ERASURE_",
    "POWERTOOLS_",
    "OIDC_",
    "REFRESH_",
    "AWS_LAMBDA_LOG_LEVEL",
)
"""Settings that may be given on the command line: `MEMORY_EMBEDDINGS=… factbook local`."""
_OF_THE_MACHINE = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "NO_PROXY", "no_proxy", "VIRTUAL_ENV")


def machine_environment(caller: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What is the same for every function: nothing of the caller's account, profile or proxy gets through."""
    return {name: caller[name] for name in _OF_THE_MACHINE if name in caller} | {
        "TZ": ":UTC",
        "HOME": str(Path.home()),
        "PYTHONUNBUFFERED": "1",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": CREDENTIALS[0],
        "AWS_SECRET_ACCESS_KEY": CREDENTIALS[1],
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def common_environment(environments: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What all of them agree on."""
    return dict(set.intersection(*(set(environment.items()) for environment in environments)))


def unusable_settings(
    functions: Iterable[Function], template: Template, caller: Mapping[str, str] = os.environ
) -> list[str]:
    """What the caller's environment and the template's parameters ask for and no function can do, a line each."""
    asked: dict[str, str] = {}
    for function in functions:
        chosen = {name: value for name, value in function.environment.items() if name.startswith(_PASSED_ON)}
        asked |= {name: _text(value) for name, value in template.resolve(chosen).items()}
    asked |= _passed_on(caller)
    found = read_settings(asked).problems
    if (asked.get("POWERTOOLS_LOG_LEVEL") or "INFO").upper() not in logging.getLevelNamesMapping():
        found.append("POWERTOOLS_LOG_LEVEL must be a level of logs, such as DEBUG, INFO or ERROR.")
    return found


def misspelt_settings(caller: Mapping[str, str] = os.environ) -> list[str]:
    """Variables of the caller that look like a setting and are none, a line each."""
    return misspelt(_passed_on(caller))


def _passed_on(caller: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in caller.items() if name.startswith(_PASSED_ON)}


def function_environment(
    function: Function,
    template: Template,
    *,
    endpoint: str,
    invoke_url: str,
    local: Mapping[str, str],
    caller: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """`local`: settings that only local mode has (a search file, a signing key); they win over the template's.

    A variable of the caller wins over both, if it is one of the service's settings. Raises TemplateError when the
    template's are more than Lambda takes.
    """
    asked = {name: _text(value) for name, value in template.resolve(function.environment).items()}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in asked.items())
    if size > LIMITS["environment"].most:
        raise TemplateError(
            f"{function.name}: its environment variables are {size} bytes, and Lambda takes {LIMITS['environment'].most}"
        )
    environment = machine_environment(caller) | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ENDPOINT_URL_LAMBDA": invoke_url,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    }
    environment |= asked
    environment |= {name: value for name, value in local.items() if name in asked or name == "SEARCH_SQLITE"}
    environment |= _passed_on(caller)
    return environment


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
