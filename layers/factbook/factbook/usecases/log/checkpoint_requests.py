"""Ask for a checkpoint now, without waiting for the next tick."""

from collections.abc import Sequence

from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import LogChanged, NotFound
from factbook.ports.log.checkpoints import CheckpointRefused, CheckpointRequests, PublishedNote


def request_checkpoint(
    checkpoints: CheckpointRequests, principal: Principal, run_ids: Sequence[str]
) -> PublishedNote:
    """The tenant's newest checkpoint, with these runs and whatever else has grown in it.

    Raises PermissionDenied, NotFound when the tenant's log is empty, LogChanged when nothing may be signed; Throttled,
    StorageUnavailable.
    """
    require_admin(principal)
    try:
        made = checkpoints.make(principal.tenant, run_ids)
    except CheckpointRefused as error:
        raise LogChanged(
            "The stored tree contradicts a published checkpoint. "
            "An operator must look at the log of the checkpoint function."
        ) from error
    if made is None:
        raise NotFound("There is no entry to checkpoint yet. Append one first.")
    return made
