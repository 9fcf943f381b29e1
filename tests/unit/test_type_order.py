"""Places by type are in the order of the names, prefixes stand together, and no key is too long."""

from hypothesis import example, given
from hypothesis import strategies as st

from factbook.domain.facts import type_order
from factbook.domain.facts.type_order import HIGHEST, LOWEST, behind, behind_type, type_place, with_prefix

SHORT = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from("!\x00 |%~a.\ufffe\U0010fffd\U0010fffe\U0010ffff"),
    min_size=1,
    max_size=12,
)
ORDERS = st.sampled_from([f"2026-01-0{day}T00:00:00.000Z|f{number}" for day in (1, 2) for number in range(3)])


@given(SHORT, SHORT, ORDERS, ORDERS)
@example("acme", "acme.note", "9", "1")
@example("a", "a!", "9", "1")
@example("a b", "a!b", "9", "1")
@example("\U0010ffff", "\U0010fffe\U0010ffff", "9", "1")
def test_places_compare_as_the_names_do_and_then_as_the_orders(
    one: str, other: str, first: str, second: str
) -> None:
    places = sorted([(one, first), (other, second)], key=lambda pair: type_place(*pair).encode())
    assert places == sorted([(one, first), (other, second)])


@given(SHORT, SHORT, ORDERS)
def test_what_is_behind_a_type_is_behind_all_of_its_facts_and_before_the_next_type(
    one: str, other: str, order: str
) -> None:
    assert LOWEST <= type_place(one) < type_place(one, order) < behind(type_place(one, order))
    assert behind(type_place(one, order)) < behind_type(one) < HIGHEST
    assert one >= other or behind_type(one) <= type_place(other)


@given(SHORT, SHORT, ORDERS)
def test_a_prefix_spans_the_types_that_begin_so_and_no_others(prefix: str, name: str, order: str) -> None:
    span = with_prefix(prefix)
    assert span is not None
    for fact_type in (name, prefix, prefix + name):
        assert (span[0] <= type_place(fact_type, order) <= span[1]) == fact_type.startswith(prefix)


@given(SHORT, ORDERS, ORDERS)
def test_before_a_place_are_all_lower_ones(fact_type: str, one: str, other: str) -> None:
    last = type_order.before(type_place(fact_type, other))
    assert (type_place(fact_type, one) <= last) == (one < other)


def test_long_types_stay_apart_and_within_a_sort_key() -> None:
    names = ["é" * 256, "é" * 255 + "è", "𐀀" * 256, "!" * 256, "~" * 256]
    order = "2026-01-01T00:00:00.000Z|" + "f" * 36
    places = {type_place(name, order) for name in names}
    assert len(places) == len(names)
    assert all(len(place.encode()) <= 1024 for place in places)
    assert with_prefix("𐀀" * 200) is None
