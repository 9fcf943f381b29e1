"""Whether what the settings name answers: an embeddings endpoint, a search index, an issuer of access tokens.

Nothing that an answer holds is repeated but versions and numbers, and no credentials.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.util import make_headers, parse_url

from factbook.settings import Settings, listed
from factbook_cli.answers import shown
from factbook_cli.api import reason

TIMEOUT = urllib3.Timeout(connect=3, read=10)
LEAST_OPENSEARCH = 2


@dataclass(frozen=True)
class Probe:
    """`problem`: what is wrong and what to do, empty when nothing is. `said`: what was found. `date`: the server's."""

    said: str = ""
    problem: str = ""
    date: str | None = None


def embeddings(settings: Settings) -> Probe:
    """One word is embedded, as the functions would. A key that is a secret's ARN is not read: the functions' role may."""
    url = settings.shown_embeddings_url
    body = {"model": settings.memory_embeddings_model, "input": ["word"], "encoding_format": "float"}
    key = settings.memory_embeddings_api_key
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        answer = _ask(
            "POST",
            f"{settings.memory_embeddings_url.rstrip('/')}/embeddings",
            headers,
            json.dumps(body).encode(),
        )
    except HTTPError as error:
        return Probe(
            problem=f"{url} does not answer: {reason(error)}. Start it, or correct MEMORY_EMBEDDINGS_URL."
        )
    date = answer.headers.get("Date")
    if answer.status in (401, 403):
        return Probe(
            problem=f"{url} refuses the key ({answer.status}). Correct MEMORY_EMBEDDINGS_API_KEY.", date=date
        )
    if answer.status == 404:
        said = "has no such route or no such model (404). Correct MEMORY_EMBEDDINGS_URL, which mostly ends in /v1, or"
        return Probe(problem=f"{url} {said} MEMORY_EMBEDDINGS_MODEL.", date=date)
    if answer.status != 200:
        return Probe(
            problem=f"{url} answers {answer.status}. Look at its log, and at the name of the model.",
            date=date,
        )
    size = _dimensions(answer.data)
    if not size:
        return Probe(problem=f"{url} answers no embedding. Is it an endpoint of OpenAI's form?", date=date)
    return Probe(f"{settings.memory_embeddings_model} at {url}: {size} dimensions", date=date)


def search(settings: Settings) -> Probe:
    """The root of the search service. A domain of AWS is asked with a signed request, by the credentials of the shell."""
    parts = parse_url(settings.opensearch_url)
    url = f"{parts.scheme}://{parts.netloc}"
    headers = dict(make_headers(basic_auth=parts.auth)) if parts.auth else {}
    if settings.opensearch_domain_arn:
        from factbook_cli.aws import signed

        headers |= signed("es", settings.opensearch_domain_arn.split(":")[3], f"{url}/")
    try:
        answer = _ask("GET", f"{url}/", headers)
    except HTTPError as error:
        return Probe(problem=f"{url} does not answer: {reason(error)}. Start it, or correct OPENSEARCH_URL.")
    date = answer.headers.get("Date")
    if answer.status in (401, 403):
        said = "Correct its credentials, or its access policy" if parts.auth else "Look at its access policy"
        return Probe(problem=f"{url} refuses the request ({answer.status}). {said}.", date=date)
    distribution, number = _version(answer.data) if answer.status == 200 else ("", "")
    if distribution != "opensearch":
        return Probe(
            problem=f"{url} is no OpenSearch service (it answers {answer.status}). Correct OPENSEARCH_URL.",
            date=date,
        )
    if int(number.partition(".")[0]) < LEAST_OPENSEARCH:
        return Probe(
            problem=f"{url} is OpenSearch {number}: version {LEAST_OPENSEARCH} or later is needed.", date=date
        )
    return Probe(f"OpenSearch {number} at {url}", date=date)


def issuer(settings: Settings) -> Probe:
    """The issuer's discovery document and keys are fetched as the service would, and held against the settings."""
    # Here: most deployments have no issuer.
    from factbook.adapters.access.jose_signatures import JoseSignatures
    from factbook.adapters.access.oidc_issuer import DISCOVERY, AnotherIssuer, OidcIssuer
    from factbook.ports.access.issuers import IssuerUnavailable

    parts = urlsplit(settings.oidc_issuer)
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    document = url.rstrip("/") + DISCOVERY
    try:
        keys = OidcIssuer(settings.oidc_issuer).published()
    except AnotherIssuer:
        return Probe(
            problem=f"{document} is of another issuer. Give OIDC_ISSUER to the letter as issuer stands there."
        )
    except IssuerUnavailable as error:
        return Probe(
            problem=f"{document} leads to no keys: {error}. Start the issuer, or correct OIDC_ISSUER; "
            "the document is to name the keys' address as jwks_uri."
        )
    signatures = JoseSignatures(frozenset(listed(settings.oidc_algorithms)))
    usable = sum(key.get("use", "sig") == "sig" and signatures.takes(key) for key in keys)
    if not usable:
        return Probe(
            problem=f"{url} publishes no key for signatures by {settings.oidc_algorithms} ({len(keys)} keys in all). "
            "Have it sign access tokens so, or correct OIDC_ALGORITHMS."
        )
    return Probe(f"{url}: {usable} of {len(keys)} keys can sign access tokens")


def _ask(
    method: str, url: str, headers: dict[str, str], body: bytes | None = None
) -> urllib3.BaseHTTPResponse:
    return urllib3.request(
        method, url, headers=headers, body=body, timeout=TIMEOUT, retries=False, redirect=False
    )


def _dimensions(data: bytes) -> int:
    try:
        vector = json.loads(data)["data"][0]["embedding"]
        return len(vector) if all(isinstance(value, int | float) for value in vector) else 0
    except (LookupError, TypeError, ValueError, RecursionError):
        return 0


def _version(data: bytes) -> tuple[str, str]:
    """Distribution and number; empty where there is none that can be read."""
    try:
        version: Any = json.loads(data)["version"]
        number = str(version["number"])
        major = number.partition(".")[0]
        known = major.isdecimal() and len(major) <= 9
        return (shown(version["distribution"]), shown(number)) if known else ("", "")
    except (LookupError, TypeError, ValueError, RecursionError):
        return "", ""
