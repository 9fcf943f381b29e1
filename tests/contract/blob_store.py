"""What every BlobStore keeps."""

import hashlib
import itertools
import uuid
from abc import ABC, abstractmethod
from typing import Any

import pytest
from support.access_model import NAMES

from factbook.domain.errors import StorageUnavailable
from factbook.ports.facts.blobs import BlobStore

BODY = "é😀".encode() * 30_000


class BlobStoreContract(ABC):
    """Subclasses give `store` and say how a stored payload is read past it."""

    store: BlobStore

    @pytest.fixture(autouse=True)
    def _tenant(self, tenant: str) -> None:
        self.tenant = tenant

    @abstractmethod
    def body_of(self, ref: str) -> bytes | None: ...

    @abstractmethod
    def versions_of(self, ref: str) -> int:
        """How much the store has under a reference: every version, and marks that say it was deleted."""

    @abstractmethod
    def refuse_removals(self) -> None: ...

    @abstractmethod
    def is_pending(self, ref: str) -> bool: ...

    def new(self) -> str:
        return self.store.new_ref(self.tenant, str(uuid.uuid4()), uuid.uuid4().hex)

    def test_a_payload_is_kept_byte_for_byte(self) -> None:
        ref = self.new()
        self.store.put(ref, BODY)
        assert self.body_of(ref) == BODY
        assert self.store.stat(ref) == (len(BODY), hashlib.sha256(BODY).hexdigest())

    def test_nothing_is_where_nothing_was_put(self) -> None:
        assert self.store.stat(self.new()) is None
        self.store.discard(self.new())

    def test_a_discarded_payload_is_gone_and_others_stay(self) -> None:
        one, other = self.new(), self.new()
        for ref in (one, other):
            self.store.put(ref, BODY)
        self.store.discard(one)
        self.store.discard(one)
        assert self.store.stat(one) is None
        assert self.body_of(other) == BODY

    def test_nothing_is_left_of_a_discarded_payload_not_even_earlier_versions(self) -> None:
        ref = self.new()
        longer = ref + "-and-more"
        for each in (ref, ref, longer):
            self.store.put(each, BODY)
        assert self.versions_of(ref) > 0
        self.store.discard(ref)
        assert self.versions_of(ref) == 0
        assert self.body_of(longer) == BODY

    def test_a_payload_that_could_not_be_removed_is_reported_and_stays(self) -> None:
        ref = self.new()
        self.store.put(ref, BODY)
        self.refuse_removals()
        with pytest.raises(StorageUnavailable):
            self.store.discard(ref)
        assert self.body_of(ref) == BODY

    def test_a_reference_names_its_tenant_fact_and_object_and_nothing_else(self) -> None:
        refs = [
            self.store.new_ref(tenant, fact, name)
            for tenant, fact, name in itertools.product(NAMES, ("f1", "f2"), ("n1", "n2"))
        ]
        assert len(set(refs)) == len(refs)
        assert all(ref.startswith("blob://s3/") and ref.count("/") == 7 for ref in refs)
        assert self.store.new_ref(self.tenant, "f", "n") == self.store.new_ref(self.tenant, "f", "n")

    def test_a_download_names_the_object_and_is_signed_anew(self) -> None:
        ref = self.new()
        self.store.put(ref, BODY)
        assert ref.rsplit("/", 1)[1] in self.store.download_url(ref, 60)

    def test_an_upload_is_for_exactly_its_bytes(self) -> None:
        ref = self.new()
        one = self.store.upload_url(ref, 5, "0" * 64, 60)
        assert ref.rsplit("/", 1)[1] in one
        assert self.store.upload_headers(5, "0" * 64)["Content-Length"] == "5"

    def test_a_payload_is_pending_until_it_is_claimed_as_often_as_one_likes(self) -> None:
        ref = self.new()
        self.store.put(ref, BODY)
        assert self.is_pending(ref)
        for _ in range(2):
            self.store.claim(ref)
            assert not self.is_pending(ref)
        assert self.body_of(ref) == BODY

    def test_a_payload_that_no_fact_names_is_pending_again_until_it_is_claimed(self) -> None:
        ref = self.new()
        self.store.put(ref, BODY)
        self.store.claim(ref)
        for _ in range(2):
            self.store.unclaim(ref)
            assert self.is_pending(ref)
        assert self.body_of(ref) == BODY
        self.store.claim(ref)
        assert not self.is_pending(ref)

    def test_unclaiming_what_is_gone_is_no_harm(self) -> None:
        ref = self.new()
        self.store.unclaim(ref)
        assert self.store.stat(ref) is None

    def test_claiming_what_is_gone_is_no_harm(self) -> None:
        ref = self.new()
        self.store.claim(ref)
        self.store.put(ref, BODY)
        self.store.discard(ref)
        self.store.claim(ref)
        assert self.store.stat(ref) is None

    def test_every_version_of_a_fact_and_of_a_tenant_is_walked_and_removed(self) -> None:
        """Claimed and pending ones alike; another fact's and another tenant's stay."""
        walk: Any = self.store
        mine, others = str(uuid.uuid4()), str(uuid.uuid4())
        refs = [self.store.new_ref(self.tenant, mine, f"{number:02d}") for number in range(5)]
        kept = self.store.new_ref(self.tenant, others, "00")
        strange = self.store.new_ref(f"{self.tenant}x", mine, "00")
        for ref in (*refs, kept, strange):
            self.store.put(ref, BODY)
        self.store.claim(refs[0])
        assert sorted(each.name for each in walk.of_fact(self.tenant, mine)) == ["00", "01", "02", "03", "04"]
        found, after = [], None
        while True:
            objects, after = walk.of_tenant(self.tenant, after, 2)
            assert len(objects) <= 2
            found += objects
            if after is None:
                break
        assert sorted((each.fact_id, each.name) for each in found) == sorted(
            [(others, "00"), *((mine, f"{number:02d}") for number in range(5))]
        )
        doomed = list(walk.of_fact(self.tenant, mine))
        for _ in range(2):
            walk.remove(self.tenant, doomed)
        walk.remove(self.tenant, [])
        assert list(walk.of_fact(self.tenant, mine)) == []
        assert [self.versions_of(ref) for ref in refs] == [0] * 5
        assert self.body_of(kept) == BODY
        assert self.body_of(strange) == BODY

    def test_a_removal_that_leaves_something_says_so(self) -> None:
        walk: Any = self.store
        ref = self.new()
        self.store.put(ref, BODY)
        *_, fact_id, _name = ref.split("/")
        self.refuse_removals()
        with pytest.raises(StorageUnavailable):
            walk.remove(self.tenant, list(walk.of_fact(self.tenant, fact_id)))
