"""Keys: no two tuples of ids share one, and none passes what DynamoDB takes."""

from hypothesis import given
from hypothesis import strategies as st
from support.access_model import NAMES

from factbook.adapters.dynamodb.key_parts import MAX_PART_BYTES, key, part, shard_of
from factbook.adapters.facts.dynamodb_items import listing_partition
from factbook.domain.facts.ids import fact_id_for

ids = (
    st.sampled_from(NAMES)
    | st.text(st.sampled_from("|%~7CE2p"), min_size=1, max_size=8)
    | st.text(min_size=1, max_size=256)
)
tuples = st.lists(ids, min_size=1, max_size=4)


@given(tuples, tuples)
def test_two_tuples_share_a_key_only_when_they_are_equal(one: list[str], other: list[str]) -> None:
    assert (key(*one) == key(*other)) is (one == other)


@given(ids)
def test_a_part_is_short_and_holds_no_delimiter(name: str) -> None:
    assert len(part(name).encode()) <= MAX_PART_BYTES
    assert "|" not in part(name)


def test_every_pair_of_hostile_names_has_parts_and_partitions_of_its_own() -> None:
    assert len({part(name) for name in NAMES}) == len(NAMES)
    partitions = [
        listing_partition(tenant, f"{kind}:{name}", shard, closed=closed)
        for tenant in ("t", "t|P:p", "t|closed")
        for kind in "OPWU"
        for name in NAMES
        for shard in (0, 1)
        for closed in (False, True)
    ]
    assert len(set(partitions)) == len(partitions)


def test_ids_spread_evenly_over_shards() -> None:
    counts = [0] * 8
    for number in range(2000):
        counts[shard_of(fact_id_for(str(number)), 8)] += 1
    assert min(counts) > 2000 / 8 / 2
