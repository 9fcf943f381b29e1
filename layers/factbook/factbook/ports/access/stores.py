"""API tokens and the deployment's own secret."""

from dataclasses import dataclass
from typing import Protocol

from factbook.domain.access.principals import Principal


@dataclass(frozen=True)
class Token:
    """An API token as kept: never its secret, only the secret's SHA-256 in hex."""

    id: str
    secret_sha256: str
    principal: Principal
    created_at: str
    created_by: str
    expires_at: str | None = None
    revoked_at: str | None = None


class TokenStore(Protocol):
    def token(self, token_id: str) -> Token | None: ...

    def create_token(self, token: Token) -> bool:
        """False when the id is taken."""
        ...

    def replace_token(self, token: Token) -> None: ...

    def tokens(self, tenant: str, after: str, limit: int) -> tuple[list[Token], bool]: ...


class SecretStore(Protocol):
    def cursor_key(self) -> bytes:
        """32 random bytes shared by every process of the deployment, made at first use."""
        ...
