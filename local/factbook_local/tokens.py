"""The first token of each tenant: a user `admin` who administers it."""

import base64
import hashlib
import hmac
from collections.abc import Mapping

from factbook.bootstrap import Services, ensure_admin_token
from factbook.settings import read_settings
from factbook_local.clients import Clients


def ensure_tokens(
    secret: bytes, tenants: list[str], environment: Mapping[str, str], clients: Clients
) -> dict[str, str]:
    """Tenant → the text of its token. `environment`: a function's, so that the token lands in its access table.

    Id and secret derive from the folder's secret: two starts on one folder give the same token.
    """
    services = Services(read_settings(environment), client=lambda service: getattr(clients, service))
    return {
        tenant: ensure_admin_token(
            services,
            tenant,
            _derive(secret, "id", tenant).hex()[:16],
            _text(_derive(secret, "token", tenant)),
        )
        for tenant in tenants
    }


def _derive(secret: bytes, purpose: str, tenant: str) -> bytes:
    return hmac.digest(secret, f"{purpose}\0{tenant}".encode(), hashlib.sha256)


def _text(secret: bytes) -> str:
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")
