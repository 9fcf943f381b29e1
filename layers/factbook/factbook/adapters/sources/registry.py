"""The handlers of a deployment, by their ids."""

from collections.abc import Callable, Mapping

from factbook.adapters.sources.http_handler import source_url
from factbook.adapters.sources.s3_handler import read_object_uri
from factbook.domain.facts.fact import Source
from factbook.domain.sources.handler_ids import handler_id
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import Ask, Asked, Handler, HandlerMissing, SourceRefused


class UserInputHandler:
    """Handler. `user-input`: nobody but a person knows; what they say comes as a write."""

    def ask(self, ask: Ask, deadline: Deadline) -> Asked:  # noqa: ARG002 - the port's form
        return Asked()


class ConfiguredHandlers:
    """Handlers. `makers` has one for each id; a handler is made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Handler]]) -> None:
        self._makers = makers
        self._made: dict[str, Handler] = {}

    def handler(self, source: Source) -> Handler:
        name = handler_id(source)
        if name is None or name not in self._makers:
            raise HandlerMissing
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def host(self, source: Source) -> str | None:
        name = handler_id(source) or ""
        try:
            if name in ("http", "mcp"):
                return source_url(source).netloc
            if name == "s3":
                return f"s3:{read_object_uri(source)[0]}"
        except SourceRefused:
            return None
        return name if name.startswith("lambda:") else None
