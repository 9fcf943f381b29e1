"""Whether the service answers."""

from typing import Literal

from factbook.domain.fields import CamelModel


class Health(CamelModel):
    ok: Literal[True]
