"""A process of its own that serves requests with secrets planted everywhere; its whole output is the exhibit.

Run as a module with the path of a file for what it planted: `{"planted": [text], "answers": [{status, text}]}`.
"""

import json
import sys
import uuid
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from factbook.ports.facts.store import Head
from support import emulators
from support.gateway import Gateway, Reply
from support.principals import TenantService

WORD = "zyxw"


class Planter:
    """Makes texts that occur nowhere else, and remembers them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, place: str) -> str:
        self.texts.append(f"{WORD}-{place}-{uuid.uuid4().hex}")
        return self.texts[-1]


def ordinary(admin: Gateway, plant: Planter) -> list[Reply]:
    """Requests that succeed, or that are refused for what they say."""
    body = {"type": "note", "scope": {}, "content": {plant("content-key"): plant("content")}}
    written = admin.call("POST", "/v1/memory/facts", body, key=plant("idempotency-key"))
    path = f"/v1/memory/facts/{written.json['id']}"
    token = {"actor": {"kind": "service", "id": "s"}}
    made = admin.call("POST", "/v1/access/tokens", token)
    plant.texts.append(made.json["token"].rpartition("_")[2])
    return [
        written,
        made,
        admin.call("GET", path, cookie=plant("cookie"), x_api_key=plant("header"), user_agent=plant("agent")),
        admin.call("POST", f"{path}/supersede", {"content": plant("large") * 2000}),
        admin.call("POST", f"{path}/supersede", {"content": 1, plant("field"): plant("value")}),
        admin.call("POST", "/v1/memory/facts", raw=f'{{"type": "{plant("bad-json")}'),
        admin.call("POST", "/v1/memory/facts", body | {"retention": plant("wrong-type")}),
        admin.call("POST", "/v1/memory/facts", body | {"type": plant("long") * 100}),
        admin.call("POST", "/v1/memory/facts/batch", {"items": [body, {"content": plant("item")}]}),
        admin.call("GET", f"/v1/memory/facts/{plant('id')}"),
        admin.call("GET", f"/v1/memory/{plant('path')}"),
        admin.call("GET", "/v1/memory/facts", query={plant("name"): plant("query")}),
        admin.call("GET", "/v1/memory/facts", query={"cursor": plant("cursor")}),
        admin.call("GET", "/v1/memory/facts", query={"scope": plant("scope")}),
        admin.call("DELETE", f"/v1/access/tokens/{plant('token-id')}"),
    ]


def unauthenticated(admin: Gateway, plant: Planter) -> list[Reply]:
    found = []
    for text in (plant("token"), f"fb_{plant('known')}_{uuid.uuid4().hex}", f"{plant('basic')} x"):
        found.append(admin.as_("").call("GET", "/v1/identity/whoami", authorization=f"Bearer {text}"))
        found.append(admin.as_("").call("GET", "/v1/identity/whoami", authorization=text))
    return found


def failing(service: TenantService, plant: Planter) -> list[Reply]:
    """The store raises words that repeat the content, foreseen and unforeseen."""
    store = service.services.memory.facts
    create, found = store.create, []
    for code in (None, "AccessDeniedException", "InternalServerError"):
        content = plant("failing")

        def fail(head: Head, code: str | None = code, content: str = content) -> Any:
            if code is None:
                raise RuntimeError(content, head)
            raise ClientError({"Error": {"Code": code, "Message": content}}, "PutItem")

        store.create = fail  # type: ignore[method-assign]
        found.append(service.admin.call("POST", "/v1/memory/facts", {"type": "note", "content": content}))
    store.create = create  # type: ignore[method-assign]
    return found


def main(report: Path) -> None:
    plant = Planter()
    with emulators.moto() as aws:
        service = TenantService(aws.services(), "acme")
        plant.texts.append(service.admin.token.rpartition("_")[2])
        answers = [
            *ordinary(service.admin, plant),
            *unauthenticated(service.admin, plant),
            *failing(service, plant),
        ]
    kept = [{"status": answer.status, "text": answer.text} for answer in answers]
    report.write_text(json.dumps({"planted": plant.texts, "answers": kept}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
