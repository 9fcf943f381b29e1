"""Whether the service answers: the one route without a principal."""

from typing import Literal

from factbook.api.app import Answer, App, Call
from factbook.domain.fields import CamelModel


class Health(CamelModel):
    ok: Literal[True]


def add_reads(app: App) -> None:
    """Register what the `read` function serves without asking who calls."""
    app.route("GET /health", "Whether the service answers", answer=Health, public=True)(health)


def health(_: Call) -> Answer:
    return Answer(200, {"ok": True})
