"""Keyed hashes of whom erasures were about: one form for years, keys that change, and comparisons that tell nothing."""

import hashlib
import hmac
import json
from base64 import b64encode

import pytest
import rfc8785

from factbook.domain.access.erasing import Selector
from factbook.domain.erasure.ledger import KeyedHash, LedgerKeys, Lookup, new_keys, read_keys, selector_text

KEY = bytes(range(32))
ANN = Selector("participant", "ann", "p1")


def document(**keys: bytes) -> dict[str, str]:
    return {"current": next(iter(keys))} | {name: b64encode(key).decode() for name, key in keys.items()}


def test_the_form_that_is_hashed_is_the_documented_one_for_good() -> None:
    """Changing this test means that no ledger kept so far finds anybody any more."""
    assert selector_text("acme", ANN) == b'["factbook-selector-v1","acme","participant","ann","p1"]'
    assert (
        selector_text("acme", Selector("fact", "5b0e")) == b'["factbook-selector-v1","acme","fact","5b0e",""]'
    )
    keys = read_keys(document(k1=KEY))
    assert keys.hash_of("acme", ANN) == KeyedHash(
        "k1", "75a1f204ddd6a22e81420543da2d1d1bdafef404dc9a29f575e467e15b8e5044"
    )


@pytest.mark.parametrize("name", ["ann", 'a"n\\n', "\u007f\u2028é😀", "a\tb\x00", "|%~"])
def test_the_text_is_canonical_json_whatever_the_ids_hold(name: str) -> None:
    expected = rfc8785.dumps(["factbook-selector-v1", name, "user", name, name])

    assert selector_text(name, Selector("user", name, name)) == expected


def test_tenants_kinds_ids_and_projects_are_told_apart() -> None:
    keys = read_keys(document(k1=KEY))
    selectors = [
        Selector("user", "a"),
        Selector("participant", "a"),
        Selector("participant", "a", "b"),
        Selector("participant", "b", "a"),
        Selector("conversation", "a"),
    ]

    hashes = {keys.hash_of(tenant, each).hmac for each in selectors for tenant in ("acme", "other")}

    assert len(hashes) == 2 * len(selectors)


def test_the_current_key_makes_hashes_and_former_keys_still_find_theirs() -> None:
    before = read_keys(document(k1=KEY))
    old = before.hash_of("acme", ANN)
    after = read_keys(document(k2=KEY[::-1], k1=KEY))
    new = after.hash_of("acme", ANN)
    assert (old.key_id, new.key_id) == ("k1", "k2")
    assert old.hmac != new.hmac

    lookup = Lookup([(old, "old"), (new, "new")])

    assert sorted(lookup.find(after, "acme", ANN)) == ["new", "old"]
    assert lookup.find(before, "acme", ANN) == ["old"], "a key that is gone finds nothing, and raises nothing"
    assert lookup.find(after, "other", ANN) == []


def test_a_hash_made_by_another_key_is_not_found_under_a_keys_name() -> None:
    keys = read_keys(document(k1=KEY, k2=KEY[::-1]))
    stolen = KeyedHash("k2", keys.under("k1", "acme", ANN))

    assert Lookup([(stolen, "x")]).find(keys, "acme", ANN) == []


def test_several_erasures_of_the_same_are_all_found() -> None:
    keys = read_keys(document(k1=KEY))
    lookup = Lookup([(keys.hash_of("acme", ANN), at) for at in ("first", "second")])

    assert lookup.find(keys, "acme", ANN) == ["first", "second"]
    assert not Lookup([])


@pytest.mark.parametrize(
    "flawed",
    [
        None,
        [],
        {},
        {"current": "k1"},
        {"current": "k2", "k1": b64encode(KEY).decode()},
        {"k1": b64encode(KEY).decode()},
        {"current": "k1", "k1": "no base64!"},
        {"current": "k1", "k1": b64encode(KEY[:31]).decode()},
        {"current": "k1", "k1": 5},
        {"current": "current", "k1": b64encode(KEY).decode()},
    ],
)
def test_a_flawed_document_is_refused_and_its_keys_are_not_repeated(flawed: object) -> None:
    with pytest.raises(ValueError, match="ledger") as refused:
        read_keys(flawed)
    assert b64encode(KEY).decode()[:8] not in str(refused.value)


def test_a_fresh_document_is_read_back_and_shows_no_key_when_printed() -> None:
    made = new_keys("k1")
    keys = read_keys(json.loads(json.dumps(made)))

    assert keys.current == "k1"
    assert len(keys.keys["k1"]) == 32
    assert made["k1"] not in repr(keys)
    assert str(keys.keys["k1"]) not in repr(keys)
    assert new_keys("k1") != made


def test_the_hash_is_plain_hmac_that_anybody_can_compute() -> None:
    keys = LedgerKeys("k1", {"k1": KEY})
    expected = hmac.new(KEY, b'["factbook-selector-v1","acme","user","u",""]', hashlib.sha256).hexdigest()

    assert keys.hash_of("acme", Selector("user", "u")).hmac == expected
