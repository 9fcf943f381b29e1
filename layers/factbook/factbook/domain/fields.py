"""Field types that the models of every capability share."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

from factbook.domain import times
from factbook.domain.errors import BadInput

Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]
CauseId = Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""The id of a log entry as others refer to it: longer than the run id it begins with."""

PATH_ID = re.compile(r"[A-Za-z0-9._:@~-]{1,256}", re.ASCII)
"""What an id that stands in a path may be."""


def _instant(text: str) -> str:
    try:
        return times.parse_instant(text)
    except BadInput as error:
        raise ValueError(error.message) from error


Instant = Annotated[str, AfterValidator(_instant)]


class CamelModel(BaseModel):
    """Python names inside, camelCase names on the wire; unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )

    def to_json(self) -> dict[str, Any]:
        """The wire form; absent fields are left out."""
        return self.model_dump(by_alias=True, exclude_none=True)
