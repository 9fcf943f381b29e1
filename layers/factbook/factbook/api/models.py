"""Parts of requests and answers that every capability uses."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from factbook.domain.access.principals import Principal
from factbook.domain.errors import PermissionDenied
from factbook.domain.fields import CamelModel, Id, PathId
from factbook.domain.scope import Scope

DEFAULT_LIMIT, MAX_LIMIT = 25, 100
_WHOLE = re.compile("-?[0-9]{1,400}", re.ASCII)


def _limit(text: Any) -> Any:
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else text
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"must be a whole number, 1 or more; above {MAX_LIMIT} counts as {MAX_LIMIT}")
    return min(number, MAX_LIMIT)


def _number(text: Any) -> Any:
    if isinstance(text, str) and _WHOLE.fullmatch(text):
        return int(text)
    raise ValueError("must be a whole number")


def _flag(text: Any) -> Any:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


Limit = Annotated[int, Field(ge=1), BeforeValidator(_limit)]
VersionParam = Annotated[int, Field(ge=1), BeforeValidator(_number)]
FlagParam = Annotated[bool, BeforeValidator(_flag)]
ExpectVersion = Annotated[int, Field(ge=1)]
ScopeParam = Annotated[str, Field(min_length=1)]
"""JSON in a query string; `api.scopes` reads it."""
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr(plane + 0xFFFE) + chr(plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)
)
_NO_TYPE = re.compile(f"[\x00-\x1f\x7f-\x9f{_NONCHARACTERS}]")


def _type_name(text: str) -> str:
    if _NO_TYPE.search(text) is not None:
        raise ValueError(
            "has control characters or code points that Unicode calls noncharacters: leave them out"
        )
    return text


WrittenType = Annotated[TypeName, AfterValidator(_type_name)]
"""The type of a fact that is written. Facts of before may have others, so reads take any."""


class ScopeRequest(CamelModel):
    """A scope as sent: the tenant is filled in."""

    tenant_id: Id | None = None
    user_id: Id | None = None
    org_id: Id | None = None
    project_id: Id | None = None
    thread_id: PathId | None = None
    session_id: Id | None = None
    participant_id: Id | None = None

    def resolve(self, principal: Principal) -> Scope:
        """Raises PermissionDenied for another tenant, ScopeInvalid for a participant without a project."""
        scope = Scope(**{**self.model_dump(), "tenant_id": principal.tenant})
        scope.check()
        self._require_own_tenant(principal)
        return scope

    def wanted(self, principal: Principal) -> dict[str, str]:
        """As a filter: the keys a scope must have. Raises PermissionDenied for another tenant."""
        self._require_own_tenant(principal)
        keys: dict[str, str] = self.to_json()
        keys.pop("tenantId", None)
        return keys

    def _require_own_tenant(self, principal: Principal) -> None:
        if self.tenant_id not in (None, principal.tenant):
            raise PermissionDenied(
                "Your token belongs to another tenant. Leave tenantId out or send your own."
            )


class PageQuery(CamelModel):
    limit: Limit = DEFAULT_LIMIT
    cursor: str | None = None


class CursorQuery(CamelModel):
    cursor: str | None = None


class FactVersion(CamelModel):
    id: str
    version: int


class ErrorBody(CamelModel):
    code: str
    message: str
    request_id: str
    details: dict[str, Any] | None = None


class ErrorAnswer(CamelModel):
    error: ErrorBody
