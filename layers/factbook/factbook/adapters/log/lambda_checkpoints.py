"""Checkpoints asked of the checkpoint function (functions/checkpoint/app.py reads the event and writes the answer)."""

from collections.abc import Sequence

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.domain.log.runs import Leaf
from factbook.ports.log.checkpoints import CheckpointRefused, PublishedNote


class LambdaCheckpoints:
    """CheckpointRequests and LeafAdoption."""

    def __init__(self, function: LambdaFunction) -> None:
        self._function = function

    def make(self, tenant: str, run_ids: Sequence[str]) -> PublishedNote | None:
        made = self._function.call({"factbook": "checkpoint", "tenant": tenant, "runIds": list(run_ids)})
        if "refused" in made:
            raise CheckpointRefused(made["refused"])
        if "note" not in made:
            return None
        more = made.get("more", False)
        return PublishedNote(made["size"], made["note"], made["vkey"], made["createdAt"], more)

    def adopt(self, tenant: str, leaves: Sequence[Leaf]) -> int:
        rows = [[leaf.index, leaf.run_id, leaf.sequence, leaf.head, leaf.salt] for leaf in leaves]
        made = self._function.call({"factbook": "adopt", "tenant": tenant, "leaves": rows})
        if "refused" in made:
            raise CheckpointRefused(made["refused"])
        return int(made["adopted"])
