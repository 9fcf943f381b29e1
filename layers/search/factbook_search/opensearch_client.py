"""The connection to an OpenSearch service, and the translation of its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import NotFoundError, TransportError

from factbook.domain.errors import SearchUnavailable
from factbook.ports.retrieval.index import IndexMissing

UNAVAILABLE = "The search index is not available. Try again."
MISSING = "There is no search index. Rebuild it."
RETRYABLE = frozenset({408, 429, 500, 502, 503, 504})


def connect(
    url: str, *, credentials: Any = None, region: str | None = None, connections: int = 10
) -> OpenSearch:
    """A client that connects when first used. `credentials` (botocore's) sign requests for the managed service.

    A request is tried once more, since the service may have closed a connection that was kept open. Every request that is
    made here is safe to repeat.
    """
    auth = Urllib3AWSV4SignerAuth(credentials, region) if credentials is not None else None
    return OpenSearch(
        hosts=[url],
        http_auth=auth,
        connection_class=Urllib3HttpConnection,
        pool_maxsize=connections,
        http_compress=True,
        max_retries=1,
        retry_on_timeout=False,
    )


@contextmanager
def outages() -> Iterator[None]:
    """Raises the port's errors in place of the client's. The client's text may hold content, so it is not passed on."""
    try:
        yield
    except NotFoundError as error:
        raise (
            IndexMissing(MISSING)
            if error.error == "index_not_found_exception"
            else SearchUnavailable(UNAVAILABLE)
        ) from error
    except TransportError as error:
        raise SearchUnavailable(UNAVAILABLE) from error
