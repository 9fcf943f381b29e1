"""Field types that the models of every capability share."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from factbook.domain import times
from factbook.domain.errors import BadInput

Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]
CauseId = Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""The id of a log entry as others refer to it: longer than the run id it begins with."""

FACT_KEY = re.compile(r"[^\x00-\x1f\x7f-\x9f]*")

PATH_ID = re.compile(r"[A-Za-z0-9._:@~-]{1,256}", re.ASCII)
"""What an id that stands in a path may be."""

PATH_ID_RULE = "cannot stand in a path: use 1 to 256 letters, digits and . _ : @ ~ -"

LOG_ID = re.compile(
    rf"({PATH_ID.pattern}):(0|[1-9][0-9]{{0,15}}):([0-9a-f]{{16}}(?:[0-9a-f]{{20}})?)", re.ASCII
)
"""What the id of a log entry may be: run, sequence, nonce."""


def _path_id(text: str) -> str:
    if PATH_ID.fullmatch(text) is None:
        raise ValueError(PATH_ID_RULE)
    return text


def _log_id(text: str) -> str:
    if LOG_ID.fullmatch(text) is None:
        raise ValueError("is no id of a log entry: send ids as the log answers them, run:sequence:nonce")
    return text


def _fact_key(text: str) -> str:
    if FACT_KEY.fullmatch(text) is None:
        raise ValueError("has control characters: leave them out")
    return text


FactKey = Annotated[
    Id, AfterValidator(_fact_key), Field(json_schema_extra={"pattern": f"^{FACT_KEY.pattern}$"})
]
"""What names a fact among those of its type and scope: any text without control characters."""

PathId = Annotated[Id, AfterValidator(_path_id), Field(json_schema_extra={"pattern": f"^{PATH_ID.pattern}$"})]
"""The id of a run, a thread or an agent, as requests send it. Records of before may hold others: they are read as `Id`."""

LogIdText = Annotated[
    CauseId, AfterValidator(_log_id), Field(json_schema_extra={"pattern": f"^{LOG_ID.pattern}$"})
]
"""The id of a log entry, as requests send it; the entry need not exist."""


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
