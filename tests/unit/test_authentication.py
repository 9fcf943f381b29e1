"""Tokens: who they stand for, when they stop, and how long a process trusts one."""

import pytest
from support.fakes import FakeAccess, FakeClock
from support.principals import issue, principal

from factbook.api.access.authentication import TRUST_SECONDS, Authenticator
from factbook.domain.errors import AuthExpired, AuthMissing, AuthRevoked, FactbookError
from factbook.ports.access.stores import Token
from factbook.settings import Settings
from factbook.wiring.services import Services

ANN = principal("t", "ann", reads=["p"])


class Door:
    """One process's authenticator, its clocks in the test's hand."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.seconds = 1000.0
        self.access = FakeAccess()
        services = Services(Settings(), self.clock)
        services.__dict__["access"] = self.access
        self.services = services
        self.authenticator = Authenticator(self.access, self.clock, lambda: self.seconds)

    def enter(self, token: str, header: str = "Bearer {}") -> object:
        return self.authenticator.authenticate({"authorization": header.format(token)})

    def kept(self, token: str) -> Token:
        found = self.access.token(token.split("_")[1])
        assert found is not None
        return found

    def revoke(self, token: str) -> None:
        kept = self.kept(token)
        self.access.replace_token(
            Token(
                kept.id,
                kept.secret_sha256,
                kept.principal,
                kept.created_at,
                kept.created_by,
                None,
                self.clock.now(),
            )
        )


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer  {} "])
def test_a_token_is_its_principal(header: str) -> None:
    door = Door()
    assert door.enter(issue(door.services, ANN), header) == ANN


@pytest.mark.parametrize(
    "header", ["", "{}", "Basic {}", "Bearer", "Bearer x{}", "Bearer {}x", "Bearer {} {}", "Bearer fb_é_{}"]
)
def test_anything_else_is_missing(header: str) -> None:
    door = Door()
    token = issue(door.services, ANN)
    with pytest.raises(AuthMissing):
        door.enter(token, header.replace("{}", token))
    with pytest.raises(AuthMissing):
        door.authenticator.authenticate({})


@pytest.mark.parametrize("sent", ["Bearer nope", "Basic abc", "Bearer", "Bearer x{}"])
def test_whoever_sent_something_else_is_told_its_form_and_not_to_send_one(sent: str) -> None:
    door = Door()
    header = sent.replace("{}", issue(door.services, ANN))
    with pytest.raises(AuthMissing, match=r"holds no token of the form fb_…"):
        door.authenticator.authenticate({"authorization": header})
    for nothing in ({}, {"authorization": ""}, {"authorization": " "}):
        with pytest.raises(AuthMissing, match=r"^Send your API token"):
            door.authenticator.authenticate(nothing)


@pytest.mark.parametrize("sent", ["{}", "Token {}", "token={}"])
def test_whoever_sent_a_token_without_its_word_is_told_the_word(sent: str) -> None:
    door = Door()
    header = sent.replace("{}", issue(door.services, ANN))
    with pytest.raises(AuthMissing, match=r"without the word Bearer before it"):
        door.authenticator.authenticate({"authorization": header})


def test_a_known_id_with_another_secret_is_missing_even_while_the_token_is_trusted() -> None:
    door = Door()
    token, other = issue(door.services, ANN), issue(door.services, ANN)
    door.enter(token)
    forged = "_".join([*token.split("_", 2)[:2], other.split("_", 2)[2]])
    with pytest.raises(AuthMissing):
        door.enter(forged)
    with pytest.raises(AuthMissing):
        door.enter("fb_" + "0" * 32 + "_" + other.split("_", 2)[2])


def test_a_token_is_looked_up_once_in_thirty_seconds() -> None:
    door = Door()
    token = issue(door.services, ANN)
    for _ in range(5):
        door.enter(token)
    assert door.access.reads == 1
    door.seconds += TRUST_SECONDS - 0.01
    door.enter(token)
    assert door.access.reads == 1
    door.seconds += 0.02
    door.enter(token)
    assert door.access.reads == 2


def test_a_revoked_token_is_refused_within_thirty_seconds_and_by_a_fresh_process_at_once() -> None:
    door = Door()
    token = issue(door.services, ANN)
    door.enter(token)
    door.revoke(token)
    fresh = Authenticator(door.access, door.clock, lambda: door.seconds)
    with pytest.raises(AuthRevoked):
        fresh.authenticate({"authorization": f"Bearer {token}"})
    door.seconds += TRUST_SECONDS
    with pytest.raises(AuthRevoked):
        door.enter(token)


def test_a_token_ends_at_its_instant_even_while_it_is_trusted() -> None:
    door = Door()
    token = issue(door.services, ANN, expires_at=door.clock.advance(seconds=1))
    door.clock.advance(milliseconds=-1)
    door.enter(token)
    door.clock.advance(milliseconds=1)
    with pytest.raises(AuthExpired):
        door.enter(token)


def test_a_refusal_never_repeats_what_was_sent() -> None:
    door = Door()
    secret = "s" * 43
    for header in (f"Bearer fb_{'0' * 32}_{secret}", f"Basic {secret}"):
        with pytest.raises(FactbookError) as refused:
            door.authenticator.authenticate({"authorization": header})
        assert secret not in refused.value.message
