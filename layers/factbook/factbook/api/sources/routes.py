"""Routes of refreshing, which the `refresh` function serves."""

from factbook.api.app import Answer, App, Call
from factbook.api.sources.models import Refresh, Refreshed, Sweep, Swept
from factbook.domain import errors as e
from factbook.domain.access.rules import require_admin
from factbook.ports.deadline import Deadline
from factbook.usecases.sources.by_hand import refresh_by_hand
from factbook.usecases.sources.sweeping import sweep_tenant

SWEEP_SECONDS = 10.0


def add_refreshes(app: App) -> None:
    app.route(
        "POST /v1/memory/facts/{id}/refresh",
        "Ask a fact's source now",
        body=Refresh,
        answer=Refreshed,
        refusals=(
            e.FactNotFound,
            e.PermissionDenied,
            e.RefreshHandlerMissing,
            e.SourceRefused,
            e.SourceUnavailable,
            e.ValidationFailed,
        ),
    )(refresh_fact)
    app.route(
        "POST /v1/memory/refresh/sweep",
        "Queue the tenant's facts that are due",
        body=Sweep,
        answer=Swept,
        status=202,
        refusals=(e.PermissionDenied, e.ValidationFailed),
    )(sweep)


def refresh_fact(call: Call) -> Answer:
    call.body(Refresh)
    ports, fact_id = call.services.sources.refreshing, call.path["id"]
    done = refresh_by_hand(ports, call.principal, fact_id, call.deadline)
    return Answer(200, {"outcome": done.outcome, "fact": done.fact.to_json()})


def sweep(call: Call) -> Answer:
    call.body(Sweep)
    require_admin(call.principal)
    deadline = Deadline(min(SWEEP_SECONDS, call.deadline.left))
    done = sweep_tenant(call.services.sources.sweeping, call.principal.tenant, deadline)
    return Answer(202, {"startedAt": done.started_at, "queued": done.queued, "more": done.more})
