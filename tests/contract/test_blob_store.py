"""The BlobStore contract on the fake, on moto and on ministack, and uploads over HTTP."""

import hashlib
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.session
import pytest
from botocore.exceptions import ClientError
from support.emulators import Aws
from support.fakes import FakeBlobs

from factbook.adapters.facts.s3_blobs import S3Blobs
from factbook.wiring.clients import OF_SERVICE

from .blob_store import BODY, BlobStoreContract


class TestFakeBlobs(BlobStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store: Any = FakeBlobs()

    def body_of(self, ref: str) -> bytes | None:
        return self.store.bodies.get(ref)

    def is_pending(self, ref: str) -> bool:
        return ref in self.store.pending

    def versions_of(self, ref: str) -> int:
        return int(ref in self.store.bodies)

    def refuse_removals(self) -> None:
        self.store.removes = False


class OnS3(BlobStoreContract):
    client: Any
    bucket: str

    def over(self, aws: Aws) -> None:
        self.client, self.bucket = aws.client("s3"), aws.settings.blobs_bucket
        self.store = S3Blobs(self.client, self.bucket)

    def body_of(self, ref: str) -> bytes | None:
        name = ref.removeprefix(f"blob://s3/{self.bucket}/")
        return self.client.get_object(Bucket=self.bucket, Key=name)["Body"].read()

    def versions_of(self, ref: str) -> int:
        name = ref.removeprefix(f"blob://s3/{self.bucket}/")
        found = self.client.list_object_versions(Bucket=self.bucket, Prefix=name)
        kept = [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
        return len([version for version in kept if version["Key"] == name])

    def refuse_removals(self) -> None:
        def refused(**_: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteObject")

        self.client.meta.events.register("before-call.s3.DeleteObject", refused)
        self.client.meta.events.register("before-call.s3.DeleteObjects", refused)

    def test_versions_past_a_page_and_under_a_mark_of_deletion_are_removed_too(self) -> None:
        ref = self.new()
        name = ref.removeprefix(f"blob://s3/{self.bucket}/")
        for _ in range(3):
            self.store.put(ref, BODY)
            self.client.delete_object(Bucket=self.bucket, Key=name)
        assert self.versions_of(ref) == 6

        def two_a_page(params: dict[str, Any], **_: Any) -> None:
            params.setdefault("MaxKeys", 2)

        self.client.meta.events.register("provide-client-params.s3.ListObjectVersions", two_a_page)
        self.store.discard(ref)
        assert self.versions_of(ref) == 0

    def tags_of(self, ref: str) -> dict[str, str]:
        name = ref.removeprefix(f"blob://s3/{self.bucket}/")
        found = self.client.get_object_tagging(Bucket=self.bucket, Key=name)["TagSet"]
        return {tag["Key"]: tag["Value"] for tag in found}

    def is_pending(self, ref: str) -> bool:
        return self.tags_of(ref) == {"pending": "true"}

    def test_an_upload_url_signs_what_makes_it_good_for_one_upload(self) -> None:
        """Only what is signed is enforced: S3 would take a PUT without the header, and make the object pending again."""
        ref = self.new()
        url = self.store.upload_url(ref, 5, "0" * 64, 60)
        signed = parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"][0].split(";")
        sent = self.store.upload_headers(5, "0" * 64)
        assert {name.lower() for name in sent} <= set(signed)
        assert sent["If-None-Match"] == "*"


class TestS3BlobsOnMoto(OnS3):
    @pytest.fixture(autouse=True)
    def _store(self, moto: Aws) -> None:
        self.over(moto)

    @pytest.mark.xfail(raises=AttributeError, strict=True, reason="moto breaks where S3 says NoSuchKey")
    def test_claiming_what_is_gone_is_no_harm(self) -> None:
        super().test_claiming_what_is_gone_is_no_harm()


class TestS3BlobsOnMinistack(OnS3):
    @pytest.fixture(autouse=True)
    def _store(self, ministack: Aws) -> None:
        self.over(ministack)

    def put(self, ref: str, body: bytes, said: bytes = BODY) -> int:
        """PUT a body to the upload URL of `said`, as a caller does; the status."""
        size, sha256 = len(said), hashlib.sha256(said).hexdigest()
        url = self.store.upload_url(ref, size, sha256, 60)
        headers = self.store.upload_headers(size, sha256) | {"Content-Length": str(len(body))}
        request = urllib.request.Request(url, body, headers, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def test_an_upload_is_pending_until_a_fact_claims_it(self) -> None:
        ref = self.new()
        assert self.put(ref, BODY) == 200
        assert self.store.stat(ref) == (len(BODY), hashlib.sha256(BODY).hexdigest())
        assert self.tags_of(ref) == {"pending": "true"}
        self.store.claim(ref)
        assert self.tags_of(ref) == {}
        assert self.body_of(ref) == BODY

    def test_an_upload_url_cannot_make_a_claimed_payload_pending_again(self) -> None:
        ref = self.new()
        assert self.put(ref, BODY) == 200
        self.store.claim(ref)
        assert self.put(ref, BODY) == 412
        assert not self.is_pending(ref)
        assert self.body_of(ref) == BODY

    def test_an_upload_of_other_bytes_is_refused(self) -> None:
        ref = self.new()
        assert self.put(ref, b"x" * len(BODY)) == 400
        assert self.store.stat(ref) is None

    def test_a_download_serves_the_bytes(self) -> None:
        ref = self.new()
        self.store.put(ref, BODY)
        with urllib.request.urlopen(self.store.download_url(ref, 60), timeout=10) as answer:
            assert answer.read() == BODY


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "af-south-1"])
def test_a_presigned_url_names_the_buckets_host_in_its_region(region: str) -> None:
    client = botocore.session.get_session().create_client("s3", region, config=OF_SERVICE["s3"])
    store = S3Blobs(client, "blobs")
    ref = store.new_ref("acme", "f1", "n1")

    for url in (store.download_url(ref, 60), store.upload_url(ref, 5, "0" * 64, 60)):
        assert url.startswith(f"https://blobs.s3.{region}.amazonaws.com/facts/")


def test_a_url_that_regions_after_2019_refuse_is_refused() -> None:
    client = botocore.session.get_session().create_client("s3", "af-south-1")

    with pytest.raises(ClientError, match="IllegalLocationConstraintException"):
        S3Blobs(client, "blobs").download_url("blob://s3/blobs/facts/a", 60)
