"""Keys that look alike: the same words in another order or form."""

import pytest

from factbook.domain.memories.keys import similar_keys, words_of


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("reporting-region", "region-reporting"),
        ("reporting-region", "reportingRegion"),
        ("reporting-region", "Reporting_Regions"),
        ("reporting-region", "region.report"),
        ("fiscal-year", "fiscal-years"),
        ("fiscal year", "FISCAL_YEAR"),
        ("prefers-email", "preference-email"),
        ("username", "user-name"),
        ("région", "region"),
        ("plan-year-2026", "planning-year-2026"),
    ],
)
def test_the_same_words_in_another_order_or_form_look_alike(key: str, other: str) -> None:
    assert similar_keys(key, [other, "unrelated"]) == [other]
    assert similar_keys(other, [key, "unrelated"]) == [key]


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("region", "reporting-region"),
        ("home-city", "work-city"),
        ("color", "colleague"),
        ("tea", "team"),
        ("a-b", "b-c"),
        ("...", "---"),
        ("customer-10023", "customer-10024"),
        ("order-A1234567", "order-A1234568"),
        ("contact-date", "contract-date"),
    ],
)
def test_other_words_do_not(key: str, other: str) -> None:
    assert similar_keys(key, [other]) == []


def test_a_key_is_not_like_itself_and_each_is_named_once() -> None:
    assert similar_keys("a-b", ["a-b", "b-a", "b-a"]) == ["b-a"]


def test_words_have_no_case_and_no_accents() -> None:
    assert words_of("Fiscal_YearEnd-é") == ["fiscal", "year", "end", "e"]
