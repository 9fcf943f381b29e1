"""Payloads, straight from the store and to it, by the URLs that the service signed; none is held whole."""

from collections.abc import Iterator, Mapping

import urllib3
from urllib3.exceptions import HTTPError

from factbook_cli.api import reason
from factbook_cli.errors import CommandError

TIMEOUT = urllib3.Timeout(connect=10, read=60)


class Transfers:
    def __init__(self) -> None:
        self._http = urllib3.PoolManager(timeout=TIMEOUT)

    def download(self, url: str, chunk: int) -> Iterator[bytes]:
        """An object in chunks, all of one size but the last. Raises CommandError."""
        try:
            response = self._http.request("GET", url, preload_content=False, retries=3)
            try:
                if response.status != 200:
                    raise CommandError(
                        f"A payload cannot be downloaded: the store answered {response.status}."
                    )
                while data := response.read(chunk):
                    yield data
            finally:
                response.release_conn()
        except HTTPError as error:
            raise CommandError(
                f"A payload cannot be downloaded: {reason(error)}. Run the command again."
            ) from error

    def upload(self, url: str, headers: Mapping[str, str], chunks: Iterator[bytes]) -> None:
        """One PUT of exactly as many bytes as the headers say. Raises CommandError."""
        try:
            response = self._http.request("PUT", url, body=chunks, headers=dict(headers), retries=False)
        except HTTPError as error:
            raise CommandError(
                f"A payload cannot be uploaded: {reason(error)}. Run the command again."
            ) from error
        if response.status not in (200, 412):  # 412: an earlier try, whose answer was lost, has put it there
            raise CommandError(f"A payload cannot be uploaded: the store answered {response.status}.")
