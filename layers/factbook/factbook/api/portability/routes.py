"""The routes of exports and imports: lines of JSON, a record each. `read` serves the first, `write` the second.

What they work with is imported at their first request: it is slow to import, and hardly any process has one.
"""

import base64
import binascii
from typing import TYPE_CHECKING

from factbook.api.app import NDJSON, Answer, App, Call
from factbook.api.portability.models import ExportQuery, ImportAnswer, ImportHeader, ImportQuery
from factbook.domain import errors as e
from factbook.domain.portability.lines import Header
from factbook.domain.strict_json import NO_JSON, Json, NoJson, dump_json, parse_json

if TYPE_CHECKING:
    from factbook.usecases.portability.importing import Imported, Numbered


def add_reads(app: App) -> None:
    """Register what the `read` function serves."""
    app.route(
        "GET /v1/memory/export",
        "Export the tenant, as lines of JSON",
        query=ExportQuery,
        gives=NDJSON,
        refusals=(e.PermissionDenied,),
    )(export_tenant)


def add_writes(app: App) -> None:
    """Register what the `write` function serves."""
    app.route(
        "POST /v1/memory/import",
        "Import records of an exported tenant",
        query=ImportQuery,
        body=ImportHeader,
        takes=NDJSON,
        answer=ImportAnswer,
        refusals=(e.PermissionDenied, e.ValidationFailed, e.LogChanged, e.ErasureInProgress),
    )(import_records)


def export_tenant(call: Call) -> Answer:
    from factbook.usecases.portability.exporting import Export

    asked = call.query(ExportQuery)
    identity: Json = {"export": asked.rewrap_for}
    public = None if asked.rewrap_for is None else _bytes(asked.rewrap_for)
    export = Export(call.services.portability.exporting, call.principal, public, call.deadline)
    page = export.page(call.position(identity, asked.cursor))
    cursor = call.cursor(identity, page.following)
    said: Json = {"hasMore": cursor is not None}
    last = {"page": said if cursor is None else said | {"nextCursor": cursor}}
    return Answer(
        200, "".join(f"{line}\n" for line in (*page.lines, dump_json(last))), {"Content-Type": NDJSON}
    )


def import_records(call: Call) -> Answer:
    from factbook.usecases.portability.importing import Import

    asked = call.query(ImportQuery)
    header, records = _lines(call.request.body, asked.at or 0)
    dry_run = asked.dry_run is True
    ports = call.services.portability.importing
    importing = Import(ports, call.principal, header, asked.file, call.deadline, dry_run=dry_run)
    done = (
        importing.begin()
        if asked.at is None
        else importing.records(records, asked.at, last=asked.last is True)
    )
    return Answer(200, _answer(done, dry_run=dry_run))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise e.BadInput("rewrapFor is not base64url. Send the key's DER so.") from error


def _lines(body: bytes, at: int) -> "tuple[Header, list[Numbered]]":
    """Raises BadInput for a line that is no record, and says which."""
    from factbook.usecases.portability.importing import Numbered, read_header

    first, *lines = body.removesuffix(b"\n").split(b"\n")
    header = _one(first, "The first line")
    if header is None or header[0] != "header":
        raise e.BadInput("The first line of the body must be the header of an export.")
    records = []
    for number, line in enumerate(lines, at):
        record = _one(line, f"Record {number}")
        if record is None:
            raise e.BadInput(f"Record {number} is no JSON object of one field, which names its kind.")
        records.append(Numbered(number, *record))
    return read_header(header[1]), records


def _one(line: bytes, what: str) -> tuple[str, object] | None:
    try:
        value = parse_json(line)
    except NoJson as error:
        raise e.BadInput(f"{what} is no JSON: {error.message.removeprefix(f'{NO_JSON}: ')}") from error
    except e.BadInput as error:
        raise e.BadInput(f"{what} is refused: {error.message}") from error
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((kind, record),) = value.items()
    return kind, record


def _answer(done: "Imported", *, dry_run: bool) -> Json:
    counts: dict[str, dict[str, int]] = {}
    for (kind, outcome), count in sorted(done.counts.items()):
        counts.setdefault(kind, {})[outcome] = count
    uploads = [{"at": each.at, "url": each.url, "headers": dict(each.headers)} for each in done.uploads]
    answer: Json = {"at": done.at, "done": done.done, "counts": counts, "uploads": uploads}
    return answer | {"dryRun": True} if dry_run else answer
