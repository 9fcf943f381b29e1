"""What callers ask of an export, and send to an import and get from it."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from factbook.api.models import FlagParam, _number
from factbook.domain.fields import CamelModel
from factbook.domain.portability.lines import Header

PlaceParam = Annotated[int, Field(ge=0, lt=2**53), BeforeValidator(_number)]
_FILE = re.compile("[0-9a-f]{16,128}", re.ASCII)


def _file(text: str) -> str:
    if _FILE.fullmatch(text) is None:
        raise ValueError("must be 16 to 128 hexadecimal digits in lower case, such as the file's SHA-256")
    return text


FileParam = Annotated[str, AfterValidator(_file), Field(json_schema_extra={"pattern": f"^{_FILE.pattern}$"})]


class ExportQuery(CamelModel):
    """`rewrapFor`: a public key (SubjectPublicKeyInfo, DER, base64url), for which the data keys are exported instead."""

    cursor: str | None = None
    rewrap_for: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | None = None


class ImportQuery(CamelModel):
    """`file`: what names the file, its digest. `at`: the place of the first record that is sent. `last`: it has no more."""

    file: FileParam
    at: PlaceParam | None = None
    last: FlagParam | None = None
    dry_run: FlagParam | None = None


class ImportHeader(CamelModel):
    """The first line of a request, as the file has it; records follow, a line each."""

    header: Header


class WantedPayload(CamelModel):
    """A payload to be PUT to `url` before the record at its place is sent again."""

    at: int
    url: str
    headers: dict[str, str]


class ImportAnswer(CamelModel):
    """`at`: the place of the record to go on with. `counts`: of this request, by kind and what became of the records."""

    at: int
    done: bool
    dry_run: bool | None = None
    counts: dict[str, dict[str, int]]
    uploads: list[WantedPayload]
