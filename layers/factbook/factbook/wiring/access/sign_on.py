"""The composition root of single sign-on."""

import time

from factbook.adapters.access.dynamodb_tokens import DynamoAccess
from factbook.adapters.access.jose_signatures import JoseSignatures
from factbook.adapters.access.oidc_issuer import OidcIssuer
from factbook.api.telemetry import kind_of, logger
from factbook.domain.access.claims import ClaimMap
from factbook.settings import Settings
from factbook.usecases.access.sign_on import SignOn


def sign_on(settings: Settings, known: DynamoAccess) -> SignOn:
    """Raises pydantic's ValidationError where `OIDC_CLAIMS` cannot be read."""
    algorithms = frozenset(each.strip() for each in settings.oidc_algorithms.split(","))
    return SignOn(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        claims=ClaimMap.model_validate_json(settings.oidc_claims),
        published=OidcIssuer(settings.oidc_issuer),
        known=known,
        signatures=JoseSignatures(algorithms),
        now=time.time,
        report=_report,
    )


def _report(error: Exception) -> None:
    logger.warning("the keys of the sign-in service", extra={"error": kind_of(error), "why": str(error)})
