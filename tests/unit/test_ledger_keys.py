"""The ledger's keys as processes read them: trusted for some minutes, read anew for an unknown id, refused when flawed."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from support.emulators import Aws
from support.logs import Elapsed

from factbook.adapters.erasure.ledger_keys import FileLedgerKeys
from factbook.adapters.retrieval.secrets_manager import SecretsManager
from factbook.domain.access.erasing import Selector
from factbook.domain.errors import StorageUnavailable
from factbook.usecases.erasure.ledger import TRUSTED_SECONDS, Ledger

ANN = Selector("user", "ann")


def document(current: str, *others: str) -> str:
    keys = {name: b64encode(name.encode() * 16).decode() for name in (current, *others)}
    return json.dumps({"current": current} | keys)


class Secret:
    """Where the keys are; counts how often it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reads = 0

    def __call__(self) -> str:
        self.reads += 1
        return self.text


def test_keys_are_read_once_and_a_rotation_is_heard_of_after_some_minutes() -> None:
    secret, elapsed = Secret(document("k1")), Elapsed()
    ledger = Ledger(secret, elapsed)
    first = ledger.hash_of("acme", ANN)
    secret.text = document("k2", "k1")
    assert ledger.hash_of("acme", ANN) == first
    assert secret.reads == 1

    elapsed.seconds += TRUSTED_SECONDS
    rotated = ledger.hash_of("acme", ANN)

    assert (first and first.key_id, rotated and rotated.key_id) == ("k1", "k2")
    assert ledger.keys().under("k1", "acme", ANN) == (first and first.hmac)


def test_a_key_that_another_process_uses_already_is_looked_for_at_once() -> None:
    secret = Secret(document("k1"))
    ledger = Ledger(secret, Elapsed())
    assert set(ledger.keys(["k1"]).keys) == {"k1"}
    secret.text = document("k2", "k1")

    assert set(ledger.keys(["k1", "k2"]).keys) == {"k1", "k2"}
    assert set(ledger.keys(["k9"]).keys) == {"k1", "k2"}, "one that nobody has is none, and no error"


def test_a_deployment_without_keys_makes_no_hash_and_knows_no_key() -> None:
    ledger = Ledger(None)

    assert ledger.hash_of("acme", ANN) is None
    assert dict(ledger.keys(["k1"]).keys) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"current":"k1"}', '{"current":"k1","k1":"c2hvcnQ="}'])
def test_flawed_keys_stop_the_erasure_rather_than_leave_it_without_a_hash(text: str) -> None:
    ledger = Ledger(lambda: text)
    with pytest.raises(StorageUnavailable, match="operator"):
        ledger.hash_of("acme", ANN)
    with pytest.raises(StorageUnavailable, match="operator"):
        ledger.keys()


def test_an_id_that_a_rotation_wrote_twice_is_refused_and_no_key_is_lost_silently() -> None:
    former, later = (b64encode(name * 32).decode() for name in (b"a", b"b"))
    ledger = Ledger(lambda: f'{{"current": "k1", "k1": "{former}", "k1": "{later}"}}')
    with pytest.raises(StorageUnavailable, match="operator"):
        ledger.hash_of("acme", ANN)


def test_what_cloudformation_generates_is_a_document_of_keys(moto: Aws) -> None:
    """64 letters and digits, which are the base64 of 48 bytes."""
    client = moto.client("secretsmanager")
    password = client.get_random_password(PasswordLength=64, ExcludePunctuation=True)["RandomPassword"]
    text = json.dumps(json.loads('{"current": "k1"}') | {"k1": password})
    arn = client.create_secret(Name="ledger", SecretString=text)["ARN"]

    ledger = Ledger(lambda: SecretsManager(client).text(arn))

    assert len(ledger.keys().keys["k1"]) == 48


def test_keys_in_a_file_are_read_from_it(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(StorageUnavailable):
        FileLedgerKeys(path).text()
    path.write_text(document("k1"))

    assert FileLedgerKeys(path).text() == document("k1")
