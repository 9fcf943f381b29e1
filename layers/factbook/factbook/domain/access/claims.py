"""What an issuer's access token says, and whom it makes: no claim, no right.

Which claim means what is a setting of the deployment (`ClaimMap`). A claim of another form than its meaning asks for
refuses the token: to leave it out would answer a caller with less than they were given, and nobody would know why.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from factbook.domain.access.listing import MAX_LISTED_CONTAINERS, containers_of
from factbook.domain.access.principals import Actor, ActorKind, Principal
from factbook.domain.errors import AuthExpired, AuthMissing
from factbook.domain.fields import CamelModel, Id, PathId

AHEAD_SECONDS = 30
"""How far the issuer's clock may be ahead of ours. An end is never put off: no token outlives its `exp`."""

ACCESS_TYPES = ("at+jwt", "application/at+jwt", "jwt", "")
"""Types in a token's header, lower case: RFC 9068's, and what issuers that do not know it write."""

NOT_OF_ACCESS_TOKENS = ("nonce", "at_hash", "c_hash", "s_hash")
"""Claims of an ID token. It says who signed in to an application; it is no permission to call anything."""

ClaimName = Annotated[str, Field(min_length=1, max_length=256)]
_ID = TypeAdapter(Id)
_PATH_ID = TypeAdapter(PathId)


class ListClaim(CamelModel):
    """Those values of a list that begin with `prefix`, without it: of all groups those that name projects."""

    claim: ClaimName
    prefix: ClaimName


class AdminClaim(CamelModel):
    """The claim is, or as a list or as words between spaces has, this value."""

    claim: ClaimName
    value: ClaimName


class ClaimMap(CamelModel):
    """Which claims mean what; a right that nothing names is held by nobody who comes this way.

    `tenant`: the claim with the tenant's id; or `fixed_tenant`: the one tenant of all tokens of the issuer. `user`: the
    person's id; `service`: the id of a program, for tokens without the claim `user`. `agent_id`: the agent that a
    person or program uses. `admin`: tenant administrators. The others are claims with ids: a list, or words between spaces.
    """

    tenant: ClaimName | None = None
    fixed_tenant: Id | None = None
    user: ClaimName = "sub"
    service: ClaimName | None = None
    agent_id: ClaimName | None = None
    admin: AdminClaim | None = None
    read_projects: ClaimName | ListClaim | None = None
    write_projects: ClaimName | ListClaim | None = None
    read_orgs: ClaimName | ListClaim | None = None
    admin_orgs: ClaimName | ListClaim | None = None

    @model_validator(mode="after")
    def _one_tenant(self) -> "ClaimMap":
        if (self.tenant is None) == (self.fixed_tenant is None):
            raise ValueError(
                "name the claim that holds the tenant (tenant), or the tenant of all (fixedTenant): one of both"
            )
        return self


def require_access_token(
    header: Mapping[str, Any], claims: Mapping[str, Any], issuer: str, audience: str, now: float
) -> None:
    """That a token whose signature holds is meant for this service, now (epoch seconds). Raises AuthMissing, AuthExpired."""
    if str(header.get("typ", "")).lower() not in ACCESS_TYPES or "crit" in header:
        raise AuthMissing("This is no access token: its header says another type. Send an access token.")
    if any(name in claims for name in NOT_OF_ACCESS_TOKENS):
        raise AuthMissing("This is an ID token. Send the access token that came with it.")
    if "cnf" in claims:
        raise AuthMissing(
            "This token is bound to a key of its holder (cnf), which Factbook cannot check. Ask for a bearer token."
        )
    if claims.get("iss") != issuer:
        raise AuthMissing("This token is of another issuer than the one this service trusts.")
    meant_for = claims.get("aud")
    if audience not in (meant_for if isinstance(meant_for, list) else [meant_for]):
        raise AuthMissing(
            "This token is meant for another service: its aud does not name this one. Ask for one with the right audience."
        )
    if _seconds(claims, "exp") <= now:
        raise AuthExpired("This token has expired. Get a new one from your sign-in service.")
    for name in ("nbf", "iat"):
        if name in claims and _seconds(claims, name) > now + AHEAD_SECONDS:
            raise AuthMissing(
                f"This token is not valid yet ({name}). Check the clock of your sign-in service."
            )


def principal_of(claims: Mapping[str, Any], names: ClaimMap) -> Principal:
    """Whom the claims make. Raises AuthMissing where they name no tenant or nobody, or are of another form."""
    tenant = names.fixed_tenant or _required_id(claims, names.tenant or "")
    kind, holder = _holder(claims, names)
    grants = {
        "reads_projects": _ids(claims, names.read_projects),
        "writes_projects": _ids(claims, names.write_projects),
        "reads_orgs": _ids(claims, names.read_orgs),
        "administers_orgs": _ids(claims, names.admin_orgs),
    }
    agent = None if names.agent_id is None else claims.get(names.agent_id)
    principal = Principal(
        tenant,
        Actor(kind=kind, id=holder),
        admin=names.admin is not None and _says(claims, names.admin),
        agent_id=None if agent is None else _valid(_PATH_ID, agent, names.agent_id or ""),
        **grants,
    )
    if containers_of(principal) > MAX_LISTED_CONTAINERS:
        raise AuthMissing(
            f"This token reaches more than {MAX_LISTED_CONTAINERS} containers: its tenant, its holder, each org and each project are "
            "one, a project that it writes is two. Ask for one with fewer scopes or groups."
        )
    return principal


def _holder(claims: Mapping[str, Any], names: ClaimMap) -> tuple[ActorKind, str]:
    if names.user not in claims and names.service is not None:
        return "service", _required_id(claims, names.service)
    return "user", _required_id(claims, names.user)


def _required_id(claims: Mapping[str, Any], name: str) -> str:
    if name not in claims:
        raise AuthMissing(f"This token lacks the claim {name}, which this service needs. Ask who runs it.")
    return _valid(_ID, claims[name], name)


def _ids(claims: Mapping[str, Any], wanted: str | ListClaim | None) -> frozenset[str]:
    if wanted is None:
        return frozenset()
    if isinstance(wanted, str):
        return frozenset(_valid(_ID, value, wanted) for value in _values(claims, wanted))
    named = (value for value in _values(claims, wanted.claim) if value.startswith(wanted.prefix))
    return frozenset(_valid(_ID, value.removeprefix(wanted.prefix), wanted.claim) for value in named)


def _says(claims: Mapping[str, Any], wanted: AdminClaim) -> bool:
    return claims.get(wanted.claim) == wanted.value or wanted.value in _values(claims, wanted.claim)


def _values(claims: Mapping[str, Any], name: str) -> list[str]:
    value = claims.get(name, [])
    values = [each for each in value.split(" ") if each] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise _misshapen(name)
    return values


def _valid(kind: TypeAdapter[str], value: Any, name: str) -> str:
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError as error:
        raise _misshapen(name) from error


def _misshapen(name: str) -> AuthMissing:
    return AuthMissing(
        f"The claim {name} of this token is not of the form that this service expects. Ask who runs it."
    )


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise AuthMissing(f"This token does not say {name} as a number of seconds.")
    return value
