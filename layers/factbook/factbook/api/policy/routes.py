"""The tenant policy's routes: `write` sets it, `read` shows it."""

from factbook.api.app import Answer, App, Call
from factbook.api.requests import MAX_ISSUES, pointer, require_body
from factbook.domain import errors as e
from factbook.domain.policy.policies import Policy
from factbook.usecases.policy import policies as policy


def add_writes(app: App) -> None:
    """Register what the `write` function serves of the policy."""
    app.route(
        "PUT /v1/memory/policy",
        "Replace the tenant's policy",
        body=Policy,
        answer=Policy,
        refusals=(e.PermissionDenied, e.ValidationFailed),
    )(put_policy)


def add_reads(app: App) -> None:
    """Register what the `read` function serves of the policy."""
    app.route("GET /v1/memory/policy", "The tenant's policy", answer=Policy, refusals=(e.PermissionDenied,))(
        get_policy
    )


def put_policy(call: Call) -> Answer:
    require_body(call.request, "Send {} for a policy of defaults alone.")
    body = call.body(Policy)
    _refuse_run_out(body, call.services.clock.now())
    kept = policy.put_policy(call.services.policies, call.principal, body)
    return Answer(200, kept.to_json())


def _refuse_run_out(body: Policy, now: str) -> None:
    issues = [{"path": pointer(where), "message": "has passed already"} for where in body.run_out(now)]
    if issues:
        raise e.ValidationFailed(
            "A keepUntil has passed already, so no fact could be written under this policy. Send a later one.",
            issues=issues[:MAX_ISSUES],
        )


def get_policy(call: Call) -> Answer:
    return Answer(200, policy.get_policy(call.services.policies, call.principal).to_json())
