"""Single sign-on: which signed tokens are taken, whom they make, and what the issuer is asked for."""

import base64
import contextlib
import hmac
import json
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry
from pydantic import ValidationError
from support.fakes import FakeAccess, FakeClock

from factbook.adapters.access.jose_signatures import JoseSignatures
from factbook.adapters.access.oidc_issuer import OidcIssuer
from factbook.api.access.authentication import Authenticator
from factbook.domain.access.claims import AHEAD_SECONDS, ClaimMap, principal_of
from factbook.domain.access.listing import MAX_LISTED_CONTAINERS
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import AuthExpired, AuthMissing, FactbookError, StorageUnavailable
from factbook.ports.access.issuers import IssuerUnavailable, KeySet, PublicKey
from factbook.usecases.access.sign_on import ASK_AGAIN_SECONDS, FRESH_SECONDS, KEPT_SECONDS, SignOn

ISSUER, AUDIENCE, NOW = "https://id.example.com/realm", "https://memory.example.com", 1_800_000_000.0
FIRST = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
SECOND = RSAKey.generate_key(2048, {"kid": "second", "use": "sig"})
CURVE = ECKey.generate_key("P-256", {"kid": "curve"})
STRANGER = RSAKey.generate_key(2048, {"kid": "first"})
NAMES = {
    "tenant": "tid",
    "service": "client_id",
    "agentId": "agent",
    "admin": {"claim": "groups", "value": "memory-admins"},
    "readProjects": "reads",
    "writeProjects": {"claim": "groups", "prefix": "project:"},
    "readOrgs": "orgs",
    "adminOrgs": "runs_orgs",
}
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 300, "iat": NOW, "sub": "ann", "tid": "acme"}


class World:
    """One process beside an issuer that can be rotated and switched off."""

    def __init__(self, remembered: dict[str, KeySet] | None = None) -> None:
        self.now = NOW
        self.keys = [FIRST, CURVE]
        self.up = True
        self.asked = 0
        self.remembered = {} if remembered is None else remembered
        self.sign_on = SignOn(
            ISSUER,
            AUDIENCE,
            ClaimMap.model_validate(NAMES),
            self,
            self,
            JoseSignatures(frozenset({"RS256", "ES256"})),
            lambda: self.now,
        )

    def published(self) -> Sequence[PublicKey]:
        self.asked += 1
        if not self.up:
            raise IssuerUnavailable("off")
        return [key.as_dict(private=False) for key in self.keys]

    def key_set(self, issuer: str) -> KeySet | None:
        return self.remembered.get(issuer)

    def keep_key_set(self, issuer: str, found: KeySet) -> None:
        self.remembered[issuer] = found

    def enter(self, token: str) -> Principal:
        authenticator = Authenticator(FakeAccess(), FakeClock(), sign_on=self.sign_on.principal)
        return authenticator.authenticate({"authorization": f"Bearer {token}"})


def signed(key: Any = FIRST, header: dict[str, Any] | None = None, **claims: Any) -> str:
    """A token of `CLAIMS` and these; None takes a claim away."""
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    algorithm = {"RSA": "RS256", "EC": "ES256", "oct": "HS256"}[key.key_type]
    lenient = JWSRegistry(algorithms=[algorithm], strict_check_header=False)  # an issuer may add to a header
    return jwt.encode({"alg": algorithm, "kid": key.kid, **(header or {})}, said, key, registry=lenient)


def with_two_persons() -> str:
    text = json.dumps(CLAIMS).removesuffix("}") + ', "sub": "bob"}'
    return jws.serialize_compact({"alg": "RS256", "kid": "first"}, text, FIRST, ["RS256"])


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: str = "") -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part(header)}.{part(claims)}.{signature}"


def test_a_token_of_the_issuer_is_whom_its_claims_name() -> None:
    assert World().enter(signed()) == Principal("acme", Actor(kind="user", id="ann"))


def test_every_right_comes_from_a_claim() -> None:
    token = signed(
        groups=["memory-admins", "project:apollo", "project:zeus", "others"],
        reads="p1 p2",
        orgs=["o1"],
        runs_orgs=["o2"],
        agent="scribe",
    )

    assert World().enter(token) == Principal(
        "acme",
        Actor(kind="user", id="ann"),
        admin=True,
        reads_projects=frozenset({"p1", "p2"}),
        writes_projects=frozenset({"apollo", "zeus"}),
        reads_orgs=frozenset({"o1"}),
        administers_orgs=frozenset({"o2"}),
        agent_id="scribe",
    )


def test_a_program_is_a_service_where_its_token_names_no_person() -> None:
    assert World().enter(signed(sub=None, client_id="crm")).actor == Actor(kind="service", id="crm")


def test_a_person_who_comes_through_a_program_stays_a_person() -> None:
    assert World().enter(signed(client_id="crm")).actor == Actor(kind="user", id="ann")


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["https://other", AUDIENCE]])
def test_an_audience_may_be_one_of_several(audience: object) -> None:
    assert World().enter(signed(aud=audience)).user_id == "ann"


@pytest.mark.parametrize(
    "header",
    [{}, {"typ": "JWT"}, {"typ": "at+jwt"}, {"typ": "application/AT+JWT"}, {"x5t": "aa", "nonce": "n"}],
)
def test_headers_that_issuers_write_are_taken(header: dict[str, Any]) -> None:
    assert World().enter(signed(header=header)).user_id == "ann"


WRONG: dict[str, str] = {
    "no issuer": signed(iss=None),
    "another issuer": signed(iss="https://id.example.com"),
    "an issuer with a slash more": signed(iss=ISSUER + "/"),
    "a list of issuers": signed(iss=[ISSUER]),
    "no audience": signed(aud=None),
    "another audience": signed(aud="https://other.example.com"),
    "an audience that begins as ours": signed(aud=AUDIENCE + ".evil.com"),
    "audiences without ours": signed(aud=["https://a", "https://b"]),
    "an audience inside an object": signed(aud={AUDIENCE: True}),
    "no end": signed(exp=None),
    "an end in words": signed(exp="2099-01-01"),
    "an end that is true": signed(exp=True),
    "a beginning in an hour": signed(nbf=NOW + 3600),
    "a beginning just past what clocks may differ": signed(nbf=NOW + AHEAD_SECONDS + 1),
    "issued in an hour": signed(iat=NOW + 3600),
    "a beginning in words": signed(nbf="now"),
    "no tenant": signed(tid=None),
    "an empty tenant": signed(tid=""),
    "a tenant that is a list": signed(tid=["acme"]),
    "a tenant that is a number": signed(tid=7),
    "nobody": signed(sub=None),
    "an empty person": signed(sub=""),
    "a person with too long an id": signed(sub="a" * 257),
    "groups that are a number": signed(groups=7),
    "groups with a number": signed(groups=["memory-admins", 7]),
    "projects inside an object": signed(reads={"p1": True}),
    "a project without a name": signed(groups=["project:"]),
    "too many projects": signed(reads=[f"p{number}" for number in range(MAX_LISTED_CONTAINERS - 1)]),
    "an agent that no path can carry": signed(agent="a/b"),
    "an ID token": signed(nonce="n-1"),
    "an ID token of a code": signed(at_hash="x"),
    "a token bound to a key": signed(cnf={"jkt": "x"}),
    "a logout token": signed(header={"typ": "logout+jwt"}),
    "a proof of possession": signed(header={"typ": "dpop+jwt"}),
    "a header that asks for more": unsigned(
        {"alg": "RS256", "kid": "first", "crit": ["b64"], "b64": False}, CLAIMS, "AA"
    ),
    "none": unsigned({"alg": "none"}, CLAIMS),
    "None with the key's name": unsigned({"alg": "None", "kid": "first"}, CLAIMS),
    "no algorithm": unsigned({"kid": "first"}, CLAIMS),
    "a signature taken away": signed().rpartition(".")[0] + ".",
    "a signature of another token": signed().rpartition(".")[0] + "." + signed(sub="bob").rpartition(".")[2],
    "claims of another token": ".".join(
        [signed().split(".")[0], signed(sub="bob").split(".")[1], signed().split(".")[2]]
    ),
    "a stranger's key under a known name": signed(STRANGER),
    "a key that is not published": signed(SECOND),
    "a curve's signature under another key's name": signed(CURVE, header={"kid": "first"}),
    "a claim that is there twice": with_two_persons(),
    "no JSON": "bm9uZQ.bm9uZQ.bm9uZQ",
    "a list": "W10.W10.AA",
    "longer than any": signed(filler="x" * 9000),
}


@pytest.mark.parametrize("token", WRONG.values(), ids=WRONG.keys())
def test_a_token_with_one_thing_wrong_is_nobody(token: str) -> None:
    with pytest.raises(AuthMissing):
        World().enter(token)


@pytest.mark.parametrize("ago", [0, 1, 3600])
def test_a_token_that_has_run_out_is_told_so_to_the_second(ago: float) -> None:
    with pytest.raises(AuthExpired):
        World().enter(signed(exp=NOW - ago))


def test_a_public_key_is_no_secret_of_a_signature() -> None:
    said = unsigned({"alg": "HS256", "kid": "first"}, CLAIMS).rstrip(".")
    for secret in (
        FIRST.as_pem(private=False),
        FIRST.as_pem(private=False).strip(),
        FIRST.as_der(private=False),
    ):
        signature = (
            base64.urlsafe_b64encode(hmac.digest(secret, said.encode(), "sha256")).decode().rstrip("=")
        )
        with pytest.raises(AuthMissing):
            World().enter(f"{said}.{signature}")


def test_a_key_inside_the_token_is_not_looked_at() -> None:
    header = {"jwk": STRANGER.as_dict(private=False), "jku": "https://evil.example.com/keys", "kid": "first"}

    with pytest.raises(AuthMissing):
        World().enter(signed(STRANGER, header=header))


def test_an_algorithm_that_the_deployment_does_not_allow_is_refused() -> None:
    token = jwt.encode({"alg": "RS512", "kid": "first"}, CLAIMS, FIRST, ["RS512"])

    with pytest.raises(AuthMissing):
        World().enter(token)


def test_a_key_for_encryption_signs_nothing() -> None:
    world = World()
    world.keys = [RSAKey.import_key({**FIRST.as_dict(private=True), "use": "enc"})]

    with pytest.raises(AuthMissing):
        world.enter(signed())


def test_a_token_without_a_key_name_is_of_the_only_key_there_is() -> None:
    world, token = World(), jwt.encode({"alg": "RS256"}, CLAIMS, FIRST, ["RS256"])
    with pytest.raises(AuthMissing):
        world.enter(token)

    alone = World()
    alone.keys = [FIRST]
    assert alone.enter(token).user_id == "ann"


@given(st.text(alphabet="abcXYZ019-_.", max_size=60))
def test_no_text_of_three_parts_is_anybody(text: str) -> None:
    with pytest.raises(FactbookError):
        World().enter(text)


def test_a_service_without_an_issuer_says_that_it_takes_no_such_tokens() -> None:
    with pytest.raises(AuthMissing, match="takes no tokens of a sign-in service"):
        Authenticator(FakeAccess(), FakeClock()).authenticate({"authorization": f"Bearer {signed()}"})


def test_the_issuer_is_asked_once_for_many_callers() -> None:
    world = World()
    for _ in range(50):
        world.enter(signed())

    assert world.asked == 1


def test_a_new_key_comes_in_by_itself_and_a_withdrawn_one_goes() -> None:
    world = World()
    world.enter(signed())
    world.keys = [SECOND]
    world.now += ASK_AGAIN_SECONDS
    assert world.enter(signed(SECOND)).user_id == "ann"

    with pytest.raises(AuthMissing):
        world.enter(signed(FIRST))


def test_tokens_with_made_up_keys_are_not_passed_on_to_the_issuer() -> None:
    world = World()
    world.enter(signed())
    world.now += ASK_AGAIN_SECONDS
    for number in range(50):
        with pytest.raises(AuthMissing):
            world.enter(signed(header={"kid": f"made-up-{number}"}))

    assert world.asked == 2


def test_who_is_known_still_comes_in_while_the_issuer_is_down() -> None:
    world = World()
    world.enter(signed())
    world.up = False
    world.now += KEPT_SECONDS - 1

    assert world.enter(signed(exp=world.now + 1)).user_id == "ann"


def test_a_new_process_needs_no_issuer_that_is_down() -> None:
    before = World()
    before.enter(signed())
    world = World(before.remembered)
    world.up = False
    world.now += FRESH_SECONDS

    assert world.enter(signed(exp=world.now + 1)).user_id == "ann"


def test_keys_of_more_than_a_day_ago_are_trusted_no_more() -> None:
    world = World()
    world.enter(signed())
    world.up = False
    world.now += KEPT_SECONDS

    with pytest.raises(StorageUnavailable):
        world.enter(signed(exp=world.now + 1))


def test_a_first_caller_hears_that_the_issuer_is_down_and_the_next_ones_do_not_wait_for_it() -> None:
    world = World()
    world.up = False
    for _ in range(10):
        with pytest.raises(StorageUnavailable, match="sign-in service does not answer"):
            world.enter(signed())
    assert world.asked == 1

    world.up = True
    world.now += ASK_AGAIN_SECONDS
    assert world.enter(signed()).user_id == "ann"


def test_a_store_that_fails_keeps_nobody_out() -> None:
    world = World()

    def failing(*_: object) -> KeySet | None:
        raise StorageUnavailable

    world.sign_on.known = type("Failing", (), {"key_set": failing, "keep_key_set": failing})()

    assert world.enter(signed()).user_id == "ann"


def test_one_tenant_may_be_that_of_all_tokens() -> None:
    names = ClaimMap.model_validate({"fixedTenant": "acme", "user": "email"})

    assert principal_of({"email": "ann@x"}, names) == Principal("acme", Actor(kind="user", id="ann@x"))


@pytest.mark.parametrize(
    "names", [{}, {"tenant": "a", "fixedTenant": "b"}, {"tenant": "a", "admins": "x"}, {"tenant": ""}]
)
def test_a_map_of_claims_that_leaves_a_doubt_is_refused(names: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        ClaimMap.model_validate(names)


@given(
    st.dictionaries(
        st.sampled_from(["groups", "reads", "orgs", "runs_orgs", "admin", "scope", "roles"]),
        st.lists(st.text("ab:", max_size=5)),
    )
)
def test_no_claim_gives_a_right_that_is_not_mapped_to_it(claims: dict[str, list[str]]) -> None:
    names = ClaimMap.model_validate({"tenant": "tid"})

    assert principal_of({"tid": "t", "sub": "u", **claims}, names) == Principal(
        "t", Actor(kind="user", id="u")
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"kty": "EC", "crv": "P-9", "x": "AA", "y": "AA"},
        {"kty": "RSA"},
        {"kty": "OKP", "crv": "X25519", "x": "AA"},
        {"kty": 5},
        {},
    ],
)
def test_a_published_key_that_is_none_lets_nobody_in_and_fails_nobody_else(odd: dict[str, Any]) -> None:
    world = World()
    keys = [dict(odd, kid="odd"), CURVE.as_dict(private=False)]
    world.published = lambda: keys  # type: ignore[method-assign]
    with pytest.raises(AuthMissing):
        world.enter(signed(header={"kid": "odd"}))
    assert world.enter(signed(CURVE)).actor.id == "ann"


@pytest.mark.parametrize(
    ("groups", "admin"),
    [
        ("memory-admins", True),
        ("openid memory-admins", True),
        (["memory-admins"], True),
        ("no\u2003memory-admins", False),  # one word, though it looks like two
        ("no\u00a0memory-admins", False),
        (["no memory-admins"], False),
        ("memory-admins2", False),
    ],
)
def test_an_administrator_is_who_has_the_value_as_a_word_or_in_a_list(groups: Any, admin: bool) -> None:
    assert World().enter(signed(groups=groups)).admin is admin


def test_the_value_of_administrators_may_have_spaces() -> None:
    names = ClaimMap.model_validate(NAMES | {"admin": {"claim": "role", "value": "Memory Admins"}})
    assert principal_of(CLAIMS | {"role": "Memory Admins"}, names).admin
    assert principal_of(CLAIMS | {"role": ["Memory Admins"]}, names).admin
    assert not principal_of(CLAIMS | {"role": "All Memory Admins"}, names).admin


class Dripping(BaseHTTPRequestHandler):
    """Begins to answer, and goes on and on."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.02)

    def log_message(self, *_: Any) -> None:
        """Not into the tests' output."""


def test_an_issuer_that_drips_is_given_up_when_its_time_is_over() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        issuer = OidcIssuer(f"http://127.0.0.1:{server.server_port}", seconds=0.2)
        with pytest.raises(IssuerUnavailable, match="too long"):
            issuer.published()
        server.shutdown()
