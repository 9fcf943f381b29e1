"""The partitions of the listing indexes that a principal's facts can be in."""

from dataclasses import dataclass

from factbook.domain.access.listing import listing_plan
from factbook.domain.access.principals import Principal
from factbook.usecases.facts.ports import FactPorts


@dataclass(frozen=True)
class Partition:
    """One shard of a listing container (None: of the administrators' index), of its current facts or of its closed ones."""

    container: str | None
    shard: int
    closed: bool


def partitions(
    ports: FactPorts, principal: Principal, wanted: dict[str, str], *, past: bool = False
) -> list[Partition]:
    """Where facts can be that match the partial scope `wanted`; with `past` the closed ones too."""
    containers = listing_plan(principal, wanted).containers
    return [
        Partition(container, shard, closed)
        for container in ((None,) if containers is None else containers)
        for closed in ((False, True) if past else (False,))
        for shard in range(ports.facts.shards(container))
    ]
