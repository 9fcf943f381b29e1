from hypothesis import given
from hypothesis import strategies as st

from factbook.domain.retrieval.ranking import SHORT_LEG, Likings, fuse, fuse_keyword_and_meaning

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


def _leg(*scores):
    return [(f"f{place}", score) for place, score in enumerate(scores)]


def test_short_legs_are_fused_by_their_ranks_alone():
    keyword, semantic = _leg(9.0, 1.0, 0.5), [("f2", 0.9), ("f9", 0.1)]

    assert fuse_keyword_and_meaning(keyword, semantic) == fuse([keyword, semantic])


def test_a_leg_that_is_missing_leaves_the_other_whole():
    keyword = _leg(*(20.0 / place for place in range(1, 40)))

    assert fuse_keyword_and_meaning(keyword, []) == fuse([keyword])
    assert fuse_keyword_and_meaning([], keyword) == fuse([keyword])


def test_a_long_tail_of_weak_keyword_hits_does_not_outvote_a_clear_answer():
    tail = [(f"chatty{number}", 1.0) for number in range(60)]
    keyword = [("code", 20.0), *tail]
    semantic = [(key, 0.5 - place / 1_000) for place, (key, _) in enumerate(tail)] + [("code", 0.1)]

    assert fuse_keyword_and_meaning(keyword, semantic)[0][0] == "code"


def test_what_the_other_leg_says_decides_between_near_ties():
    keyword = [(f"k{number}", 10.0 - number / 100) for number in range(12)]
    semantic = [("k5", 0.9)] + [(f"s{number}", 0.1) for number in range(12)]

    assert fuse_keyword_and_meaning(keyword, semantic)[0] == ("k5", 1 / 61 + 1 / 61)


SCORES = st.lists(st.floats(0.01, 30), min_size=SHORT_LEG + 1, max_size=40)


@given(SCORES, SCORES)
def test_long_legs_are_put_in_one_order_and_what_is_nth_there_has_the_rank_in_both(words, meanings):
    keyword = [(f"f{place}", score) for place, score in enumerate(sorted(words, reverse=True))]
    semantic = [(f"f{2 * place}", score) for place, score in enumerate(sorted(meanings, reverse=True))]

    ranked = fuse_keyword_and_meaning(keyword, semantic)

    assert [score for _, score in ranked] == [2 / (60 + rank) for rank in range(1, len(ranked) + 1)]


def test_of_near_ties_the_one_in_the_company_of_the_best_comes_first():
    near = [f"run{number}/near" for number in range(2, 14)]
    keyword = [("run1/best", 20.0), *((key, 9.0) for key in near), ("run1/near", 8.5), ("far", 1.0)]
    semantic = [("run1/best", 0.9), *((key, 0.5) for key in near), ("run1/near", 0.5), ("far", 0.1)]

    def second(likings):
        return fuse_keyword_and_meaning(keyword, semantic, likings)[1][0]

    assert second(Likings()) == "run2/near"
    assert second(Likings(company=lambda key: key.split("/")[0])) == "run1/near"


def test_what_the_named_speaker_said_comes_before_a_near_tie():
    keyword = [(f"f{number}", 10.0 - number / 10) for number in range(15)]
    semantic = [(key, score / 20) for key, score in keyword]

    assert fuse_keyword_and_meaning(keyword, semantic, Likings(named={"f1"}))[0][0] == "f1"


@given(LEG, LEG)
def test_only_what_a_leg_found_is_ranked_and_each_once(keyword, semantic):
    ranked = [key for key, _ in fuse_keyword_and_meaning(keyword, semantic)]

    assert sorted(ranked) == sorted({key for key, _ in (*keyword, *semantic)})
