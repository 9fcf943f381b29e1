"""The log's routes: appends and checkpoints of `write`, reads and proofs of `read`."""

from factbook.api.app import Answer, App, Call
from factbook.api.log.models import (
    AppendEntries,
    CheckpointAnswer,
    CheckpointPage,
    CheckpointsQuery,
    EntriesAnswer,
    EntryPage,
    LeafPage,
    LeavesQuery,
    ListedRuns,
    MakeCheckpoint,
    ProofAnswer,
    ProofQuery,
    ReadRunQuery,
    RunPage,
    RunsQuery,
    ThreadQuery,
    VerificationAnswer,
)
from factbook.api.models import CursorQuery
from factbook.api.pages import page_json
from factbook.api.requests import read_path_id
from factbook.api.scopes import wanted_scope
from factbook.domain import errors as e
from factbook.domain.access.rules import require_admin
from factbook.domain.log.entries import LogEntry
from factbook.domain.strict_json import Json
from factbook.usecases.log import appending as log
from factbook.usecases.log import proofs as log_proofs
from factbook.usecases.log import reading as log_reading
from factbook.usecases.log.checkpoint_requests import request_checkpoint
from factbook.usecases.merging import NEWEST

APPENDS = (
    e.NotFound,
    e.PermissionDenied,
    e.ErasureInProgress,
    e.ScopeInvalid,
    e.ValidationFailed,
    e.LogChanged,
    e.IdempotencyMismatch,
)
READS = (e.NotFound, e.LogChanged)
LEAVES_AT_ONCE = 1000


def add_writes(app: App) -> None:
    """Register what the `write` function serves of the log."""
    app.route(
        "POST /v1/memory/runs/{runId}/log",
        "Append entries to a run",
        body=AppendEntries,
        answer=EntriesAnswer,
        status=201,
        parts="entries",
        idempotent=True,
        refusals=APPENDS,
    )(append_entries)
    app.route(
        "POST /v1/memory/checkpoints",
        "Make a checkpoint now",
        body=MakeCheckpoint,
        answer=CheckpointAnswer,
        status=201,
        idempotent=True,
        refusals=(e.NotFound, e.PermissionDenied, e.LogChanged, e.ValidationFailed),
    )(make_checkpoint)


def add_reads(app: App) -> None:
    """Register what the `read` function serves of the log."""
    app.route(
        "GET /v1/memory/runs",
        "List runs, newest first",
        query=RunsQuery,
        answer=ListedRuns,
        refusals=(e.PermissionDenied,),
    )(list_runs)
    app.route(
        "GET /v1/memory/runs/{runId}/log",
        "Read a run",
        query=ReadRunQuery,
        answer=RunPage,
        refusals=READS,
    )(read_run)
    app.route(
        "GET /v1/memory/runs/{runId}/log/verify",
        "Verify a run on the server",
        query=CursorQuery,
        answer=VerificationAnswer,
        refusals=(e.NotFound,),
    )(verify_run)
    app.route(
        "GET /v1/memory/runs/{runId}/log/proof",
        "Prove an entry by a published checkpoint",
        query=ProofQuery,
        answer=ProofAnswer,
        refusals=(e.NotFound,),
    )(prove_entry)
    app.route("GET /v1/memory/log/{logId}", "Read a log entry by its id", answer=LogEntry, refusals=READS)(
        read_entry
    )
    app.route(
        "GET /v1/memory/threads/{threadId}/messages",
        "Messages of a conversation, across runs",
        query=ThreadQuery,
        answer=EntryPage,
        refusals=(e.NotFound, e.LogChanged),
    )(read_thread)
    app.route(
        "GET /v1/memory/checkpoints",
        "Published checkpoints, newest first",
        query=CheckpointsQuery,
        answer=CheckpointPage,
        refusals=(e.NotFound,),
    )(list_checkpoints)
    app.route(
        "GET /v1/memory/checkpoints/latest",
        "The newest published checkpoint",
        answer=CheckpointAnswer,
        refusals=(e.NotFound,),
    )(latest_checkpoint)
    app.route(
        "GET /v1/memory/checkpoints/leaves",
        "Leaves of the tree under the checkpoints",
        query=LeavesQuery,
        answer=LeafPage,
        refusals=(e.PermissionDenied,),
    )(list_leaves)


def append_entries(call: Call) -> Answer:
    body = call.body(AppendEntries)
    requests = [entry.request(call.principal) for entry in body.entries]
    operation = call.operation.key if "idempotency-key" in call.request.headers else None
    entries = log.append_entries(
        call.services.logs.log,
        call.principal,
        read_path_id(call.request, "runId"),
        requests,
        body.after_sequence,
        operation,
        call.deadline,
    )
    return Answer(201, {"entries": [entry.to_json() for entry in entries]})


def make_checkpoint(call: Call) -> Answer:
    body = call.body(MakeCheckpoint)
    made = request_checkpoint(call.services.logs.checkpoint_requests, call.principal, body.run_ids)
    return Answer(201, log_proofs.note_json(made))


def list_runs(call: Call) -> Answer:
    asked = call.query(RunsQuery)
    wanted = wanted_scope(call.principal, asked.scope)
    identity: Json = {"runs": wanted}
    position = call.position(identity, asked.cursor)
    before = str(position["at"]) if position else NEWEST
    page = log_reading.list_runs(
        call.services.logs.store, call.principal, wanted, asked.limit, before, call.deadline
    )
    data: list[Json] = [
        {"runId": row.run_id, "scope": row.scope.to_json(), "startedAt": row.started_at} for row in page.runs
    ]
    following = None if page.position is None else {"at": page.position}
    return Answer(200, page_json(data, call.cursor(identity, following)))


def read_run(call: Call) -> Answer:
    asked = call.query(ReadRunQuery)
    run_id = read_path_id(call.request, "runId")
    logs = call.services.logs
    identity: Json = {"run": run_id, "form": asked.form, "size": asked.checkpoint_size}
    position = call.position(identity, asked.cursor)
    since = int(position["since"]) if position else asked.since_sequence
    if asked.form == "plain":
        page = log_reading.read_run(logs.store, logs.vault, call.principal, run_id, since, asked.limit)
        return Answer(200, page_json(page.data, call.cursor(identity, page.following)))
    page, leaves = log_reading.read_stored_run(
        logs.store, logs.tree, call.principal, run_id, since, asked.limit
    )
    size = asked.checkpoint_size
    prover = log_proofs.prover_for(logs.tree, call.principal.tenant, size) if size is not None else None
    shown = [
        log_proofs.leaf_json(leaf, prover.inclusion(leaf.index) if prover else None)
        for leaf in leaves
        if size is None or leaf.index < size
    ]
    return Answer(200, page_json(page.data, call.cursor(identity, page.following)) | {"leaves": shown})


def verify_run(call: Call) -> Answer:
    run_id = read_path_id(call.request, "runId")
    identity: Json = {"verify": run_id}
    start = log_proofs.Progress.read(call.position(identity, call.query(CursorQuery).cursor))
    logs = call.services.logs
    answer, following = log_proofs.verify_stored_run(logs.store, logs.tree, call.principal, run_id, start)
    call.observation.count(VerificationFailures=int(not answer["holds"]))
    cursor = call.cursor(identity, following)
    return Answer(200, {**answer, "hasMore": cursor is not None} | ({"nextCursor": cursor} if cursor else {}))


def prove_entry(call: Call) -> Answer:
    asked = call.query(ProofQuery)
    logs = call.services.logs
    run_id = read_path_id(call.request, "runId")
    proof = log_proofs.prove_entry(
        logs.store, logs.tree, logs.published, call.principal, run_id, asked.sequence, asked.older_size
    )
    return Answer(200, proof)


def read_entry(call: Call) -> Answer:
    logs = call.services.logs
    entry = log_reading.read_entry(logs.store, logs.vault, call.principal, call.path["logId"])
    return Answer(200, entry.to_json())


def read_thread(call: Call) -> Answer:
    asked = call.query(ThreadQuery)
    thread = read_path_id(call.request, "threadId")
    logs = call.services.logs
    identity: Json = {"thread": thread, "order": asked.order, "wanted": asked.wanted()}
    position = call.position(identity, asked.cursor)
    page = log_reading.read_thread(
        logs.store,
        logs.vault,
        call.principal,
        thread,
        asked.wanted(),
        str(position["at"]) if position else "",
        asked.limit,
        newest_first=asked.order == "desc",
    )
    return Answer(200, page_json(page.data, call.cursor(identity, page.following)))


def list_checkpoints(call: Call) -> Answer:
    asked = call.query(CheckpointsQuery)
    logs, tenant = call.services.logs, call.principal.tenant
    identity: Json = {"checkpoints": asked.checkpoint_size}
    position = call.position(identity, asked.cursor)
    size = asked.checkpoint_size
    prover = log_proofs.prover_for(logs.tree, tenant, size) if size is not None else None
    top = log_proofs.BEYOND_ANY_TREE if size is None else size + 1
    found = logs.tree.notes(tenant, int(position["below"]) if position else top, asked.limit)
    data = [log_proofs.note_json(note, prover.extension_of(note.size) if prover else None) for note in found]
    following = {"below": found[-1].size} if len(found) == asked.limit else None
    return Answer(200, page_json(data, call.cursor(identity, following)))


def latest_checkpoint(call: Call) -> Answer:
    logs = call.services.logs
    note = log_proofs.newest_checkpoint(logs.tree, logs.published, call.principal.tenant)
    return Answer(200, log_proofs.note_json(note))


def list_leaves(call: Call) -> Answer:
    asked = call.query(LeavesQuery)
    require_admin(call.principal)
    end = log_proofs.BEYOND_ANY_TREE if asked.checkpoint_size is None else asked.checkpoint_size
    count = min(LEAVES_AT_ONCE, end - asked.start)
    found = call.services.logs.tree.leaves(call.principal.tenant, asked.start, count) if count > 0 else []
    following = asked.start + len(found) if found and len(found) == count < end - asked.start else None
    page: Json = {
        "data": [log_proofs.leaf_json(leaf) for leaf in found],
        "hasMore": following is not None,
    }
    return Answer(200, page if following is None else page | {"next": following})
