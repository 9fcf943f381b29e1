from hypothesis import given
from hypothesis import strategies as st

from factbook.domain.ranking import fuse

LEG = st.lists(st.sampled_from("abcdefghij"), unique=True).map(lambda ids: [(key, 1.0) for key in ids])


def test_one_leg_alone_at_rank_one_scores_one_sixty_first():
    assert fuse([[("a", 7.5)], []]) == [("a", 0.01639344262295082)]


def test_a_fact_found_by_both_legs_is_above_one_found_first_by_a_single_leg():
    keyword = [("only-words", 9.0), ("both", 3.0)]
    semantic = [("only-meaning", 0.9), ("both", 0.4)]

    ranked = fuse([keyword, semantic])

    assert ranked[0] == ("both", 1 / 62 + 1 / 62)
    assert [key for key, _ in ranked[1:]] == ["only-words", "only-meaning"]


@given(st.lists(LEG, max_size=3))
def test_every_found_fact_is_ranked_once_and_its_score_is_the_sum_over_its_legs(legs):
    ranked = fuse(legs)

    assert sorted(key for key, _ in ranked) == sorted({key for leg in legs for key, _ in leg})
    for key, score in ranked:
        places = [[found for found, _ in leg].index(key) + 1 for leg in legs if (key, 1.0) in leg]
        assert abs(score - sum(1 / (60 + place) for place in places)) < 1e-12
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
