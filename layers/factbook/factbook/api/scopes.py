"""A scope in a query string: JSON."""

from factbook.api.models import ScopeRequest
from factbook.api.requests import validate
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import NoJson, parse_json


def read_scope(text: str | None) -> ScopeRequest:
    """The scope, which names nothing when there is none. Raises BadInput, UnknownField, ValidationFailed."""
    if text is None:
        return ScopeRequest()
    try:
        value = parse_json(text)
    except NoJson:
        value = None
    except BadInput as error:
        raise BadInput(f"scope: {error.message}") from error
    if not isinstance(value, dict):
        raise BadInput(
            'scope must be a JSON object such as {"projectId":"p1"}, as text in double quotes: '
            "json.dumps in Python, -G --data-urlencode 'scope=…' with curl."
        )
    return validate(ScopeRequest, value, "/scope")


def wanted_scope(principal: Principal, text: str | None) -> dict[str, str]:
    """A partial scope: the keys that a record's must have. Raises as `read_scope`, PermissionDenied for another tenant."""
    return read_scope(text).wanted(principal)
