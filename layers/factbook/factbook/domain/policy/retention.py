"""How long to keep."""

from typing import Annotated

from pydantic import Field

from factbook.domain.fields import CamelModel, Instant


class KeepLimits(CamelModel):
    """How long to keep a fact: the later of both limits."""

    keep_until: Instant | None = None
    keep_days: Annotated[int, Field(ge=1, le=36_525)] | None = None

    @property
    def limited(self) -> bool:
        return self.keep_until is not None or self.keep_days is not None

    def run_out(self, now: str) -> bool:
        """Whether nothing written from `now` on could be kept."""
        return self.keep_until is not None and self.keep_days is None and self.keep_until <= now
