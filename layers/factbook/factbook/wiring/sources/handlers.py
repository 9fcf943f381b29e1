"""The composition root of what asks sources; only the function that refreshes facts imports it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.sources.credentials import SecretTexts, TenantCredentials
from factbook.adapters.sources.fetching import Fetcher
from factbook.adapters.sources.http_handler import Credentials, HttpHandler
from factbook.adapters.sources.lambda_handler import LambdaHandler, read_functions
from factbook.adapters.sources.mcp_handler import McpHandler
from factbook.adapters.sources.registry import ConfiguredHandlers, UserInputHandler
from factbook.adapters.sources.s3_handler import Buckets, S3Handler
from factbook.adapters.sources.urls import Allowed
from factbook.ports.sources.handlers import Handler
from factbook.settings import Settings, listed
from factbook.usecases.caches import TrustedAnswers

SECRET_SECONDS = 300.0


def source_handlers(
    settings: Settings, client: Callable[[str], Any], fetcher: Fetcher | None = None
) -> ConfiguredHandlers:
    """Those that the settings configure. `client` makes the SDK's client of a service."""
    fetch = fetcher or Fetcher(Allowed.read(listed(settings.refresh_allow)))
    credentials = _credentials(settings, client)
    makers: dict[str, Callable[[], Handler]] = {
        "http": lambda: HttpHandler(fetch, credentials),
        "mcp": lambda: McpHandler(fetch, credentials),
        "user-input": UserInputHandler,
    }
    if settings.refresh_buckets:
        buckets = Buckets(frozenset(_foreign_buckets(settings)))
        makers["s3"] = lambda: S3Handler(client("s3"), buckets)
    return ConfiguredHandlers({**makers, **_functions(settings, client)})


def _foreign_buckets(settings: Settings) -> Iterator[str]:
    """Never those of the service: they have every tenant's contents."""
    own = {settings.blobs_bucket, settings.checkpoints_bucket}
    for entry in listed(settings.refresh_buckets):
        if entry.partition("/")[0] not in own:
            yield entry


def _functions(settings: Settings, client: Callable[[str], Any]) -> Mapping[str, Callable[[], Handler]]:
    def maker(function: str) -> Callable[[], Handler]:
        return lambda: LambdaHandler(LambdaFunction(client("lambda"), function))

    functions = read_functions(listed(settings.refresh_functions))
    return {f"lambda:{name}": maker(function) for name, function in functions.items()}


def _credentials(settings: Settings, client: Callable[[str], Any]) -> Credentials:
    if not settings.refresh_secrets:
        return lambda _tenant, _url: {}
    secret = TrustedAnswers[str, str](
        lambda name: SecretTexts(client("secretsmanager")).text(name), SECRET_SECONDS
    )
    return TenantCredentials(settings.refresh_secrets, secret).headers
