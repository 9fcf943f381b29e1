"""The first token of each tenant: a user `admin` who administers it. Runs as a function does, in a forked process."""

import base64
import hashlib
import hmac
from typing import Any

from factbook.wiring.services import ensure_admin_token, services


def make_tokens(event: dict[str, Any], _: Any = None) -> dict[str, str]:
    """`{"secret": hex, "tenants": [...]}` → tenant → the text of its token.

    Id and secret derive from the folder's secret: two starts on one folder give the same token.
    """
    secret = bytes.fromhex(event["secret"])
    return {
        tenant: ensure_admin_token(
            services(),
            tenant,
            _derive(secret, "id", tenant).hex()[:16],
            _text(_derive(secret, "token", tenant)),
        )
        for tenant in event["tenants"]
    }


def _derive(secret: bytes, purpose: str, tenant: str) -> bytes:
    return hmac.digest(secret, f"{purpose}\0{tenant}".encode(), hashlib.sha256)


def _text(secret: bytes) -> str:
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")
