"""What every TokenStore and SecretStore keeps."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from factbook.domain.access.principals import Actor, Principal
from factbook.ports.access.stores import SecretStore, Token, TokenStore


class TokenStoreContract:
    """Subclasses give `store` and, for the secret, a second store over the same data in `twin`."""

    store: TokenStore
    twin: SecretStore

    @pytest.fixture(autouse=True)
    def _tenant(self, tenant: str) -> None:
        self.tenant = tenant

    def new(self, created_at: str = "2026-01-01T00:00:00.000Z", tenant: str | None = None) -> Token:
        holder = Principal(
            tenant or self.tenant,
            Actor(kind="agent", id="ünï|%~"),
            reads_projects=frozenset(["p|", "q"]),
            writes_projects=frozenset(["w"]),
            reads_orgs=frozenset(["o"]),
            administers_orgs=frozenset(["a"]),
            agent_id="helper",
        )
        return Token(uuid.uuid4().hex, "0" * 64, holder, created_at, "user:root")

    def kept(self, **new: str) -> Token:
        token = self.new(**new)
        assert self.store.create_token(token)
        return token

    def test_a_token_comes_back_as_it_was_kept(self) -> None:
        for token in (self.new(), replace(self.new(), expires_at="2027-01-01T00:00:00.000Z")):
            assert self.store.create_token(token)
            assert self.store.token(token.id) == token

    def test_a_token_that_was_never_made_is_none(self) -> None:
        assert self.store.token("nobody") is None

    def test_an_id_is_taken_once(self) -> None:
        token = self.kept()
        assert not self.store.create_token(replace(token, secret_sha256="1" * 64))
        assert self.store.token(token.id) == token

    def test_of_parallel_creations_of_one_id_one_succeeds(self) -> None:
        token = self.new()
        rivals = [replace(token, secret_sha256=f"{number:064}") for number in range(10)]
        with ThreadPoolExecutor(10) as pool:
            made = list(pool.map(self.store.create_token, rivals))
        assert made.count(True) == 1
        assert self.store.token(token.id) == rivals[made.index(True)]

    def test_a_replaced_token_is_the_new_one_everywhere(self) -> None:
        token = self.kept()
        revoked = replace(token, revoked_at="2026-02-01T00:00:00.000Z")
        self.store.replace_token(revoked)
        assert self.store.token(token.id) == revoked
        assert self.store.tokens(self.tenant, "", 10)[0] == [revoked]

    def test_tokens_of_a_tenant_come_oldest_first_after_a_place(self) -> None:
        made = [self.kept(created_at=f"2026-01-0{day}T00:00:00.000Z") for day in (3, 1, 2)]
        self.kept(tenant=self.tenant + "|")
        in_order = [made[1], made[2], made[0]]
        first, more = self.store.tokens(self.tenant, "", 2)
        assert (first, more) == (in_order[:2], True)
        rest, more = self.store.tokens(self.tenant, f"{first[-1].created_at}|{first[-1].id}", 2)
        assert (rest, more) == (in_order[2:], False)
        assert self.store.tokens(self.tenant + "x", "", 2) == ([], False)

    def test_the_secret_of_the_deployment_is_made_once_and_is_the_same_for_all(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(lambda _: self.twin.cursor_key(), range(8)))
        assert len(keys) == 1
        assert len(keys.pop()) == 32
