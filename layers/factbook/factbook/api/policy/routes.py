"""The tenant policy's routes: `write` sets it, `read` shows it."""

from factbook.api.app import Answer, App, Call
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
    kept = policy.put_policy(call.services.policies, call.principal, call.body(Policy))
    return Answer(200, kept.to_json())


def get_policy(call: Call) -> Answer:
    return Answer(200, policy.get_policy(call.services.policies, call.principal).to_json())
