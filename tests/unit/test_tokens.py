import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from factbook.domain.retrieval.tokenizer import (
    MAX_QUERY_CHARACTERS,
    MAX_QUERY_TERMS,
    MAX_QUERY_WORDS,
    MAX_TOKEN,
    PIECE,
    Tokenizer,
    text_of,
)
from factbook_search.english import english_tokenizer

PLAIN = Tokenizer(stem=lambda word: word, stop_words=frozenset({"the", "to", "be", "or", "not", "don't"}))
ENGLISH = english_tokenizer()


def tokens(text: str) -> list[str]:
    return list(PLAIN.document(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ERR-7Q41-ZX", ["err_7q41_zx", "err", "7q41", "zx"]),
        ("err_7q41.zx", ["err_7q41_zx", "err", "7q41", "zx"]),
        ("ann@example.com", ["ann_example_com", "ann", "example", "com"]),
        ("src/app/main.py", ["src_app_main_py", "src", "app", "main", "py"]),
        ("v1.2.3,", ["v1_2_3", "v1", "2", "3"]),
        ("Ann's don’t", ["ann", "don_t", "don", "t"]),
        ("(end). Start", ["end", "start"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("猫 2024年", ["猫", "2024", "年"]),
        ("iPhone用", ["iphone", "用"]),
        ("검색", ["검", "색", "검색"]),
        ("مُحَمَّد", ["محمد"]),
        ("हिन्दी", ["हिन्दी"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zero", "width"]),
        ("Straße ﬁne ① x²", ["strasse", "fine", "1", "x2"]),
        ("… — \t\n ─ \x00", []),
        ("👍🏽 it’s done ❤️‍🔥 1️⃣", ["👍", "it", "done", "❤", "🔥", "1"]),
        ("🇩🇪", ["🇩", "🇪", "🇩🇪"]),
        ("בית־ספר", ["בית_ספר", "ביתספר", "בית", "ספר"]),
        ("e-mail", ["e_mail", "email", "e", "mail"]),
        ("Wi‑Fi", ["wi_fi", "wifi", "wi", "fi"]),
        (
            "state-of-the-art 2024-05-06",
            ["state_of_the_art", "state", "of", "the", "art", "2024_05_06", "2024", "05", "06"],
        ),
        ("Łódź œuvre þing Ħamrun ırmak đak", ["lodz", "oeuvre", "thing", "hamrun", "irmak", "dak"]),
        ("Müller", ["muller", "mueller"]),
        ("Århus smørrebrød", ["arhus", "aarhus", "smorrebrod", "smoerrebroed"]),
        ("don`t O´Brien Hawaiʻi", ["don", "t", "o_brien", "o", "brien", "hawai_i", "hawai", "i"]),
        ("٣٤ ۱۲ १२ ４２", ["34", "12", "12", "42"]),
        ("أحمد إلى آمن", ["احمد", "الي", "امن"]),
        ("کتابی", ["كتابي"]),
        ("مدرسة", ["مدرسه"]),
    ],
)
def test_a_text_gives_its_words(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@given(st.text())
def test_composed_and_decomposed_texts_give_the_same(text: str) -> None:
    assert tokens(unicodedata.normalize("NFC", text)) == tokens(unicodedata.normalize("NFD", text))


@given(st.text())
def test_letter_case_and_width_make_no_difference(text: str) -> None:
    assert tokens(text) == tokens(text.casefold()) == tokens(unicodedata.normalize("NFKC", text))


@example("\U0001f23c")  # of a later Unicode than the interpreter's
@example("\u2308x\u2309 \u2320 \u2768y\u2769")  # brackets and a sign of mathematics among the symbols
@given(st.text() | st.text(alphabet="ab-_./:@'+#& \"*()[]{}\\|~^!?<>="))
def test_a_token_is_letters_digits_marks_and_underscores(text: str) -> None:
    for token in (*ENGLISH.document(text), *ENGLISH.query(text)):
        assert 1 <= len(token) <= MAX_TOKEN
        kinds = {"_" if c == "_" or c.isalnum() else unicodedata.category(c) for c in token}
        assert kinds <= {"_", "So", "Cn", "Mn", "Mc", "Me"}, token
        assert token.split() == [token]


@example("A:\x80")
@given(st.text())
def test_what_a_query_looks_for_is_in_the_text_it_was_taken_from(text: str) -> None:
    assert set(ENGLISH.query(text)) <= set(ENGLISH.document(text))
    assert bool(ENGLISH.query(text)) == bool(list(ENGLISH.document(text)))


def test_stop_words_are_left_out_of_a_query_that_has_another_word() -> None:
    assert PLAIN.query("to be or not to be a zeppelin") == ("a", "zeppelin")
    assert PLAIN.query("to be or not to be") == ("to", "be", "or", "not")
    assert PLAIN.query("state-or-the-art") == ("state_or_the_art", "state", "art")


def test_a_query_uses_pairs_and_a_lone_character_as_it_stands() -> None:
    assert PLAIN.query("東京都") == ("東京", "京都")
    assert PLAIN.query("猫") == ("猫",)


def test_a_query_is_bounded_and_keeps_its_identifiers() -> None:
    words = " ".join(
        f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(10_000)
    )
    terms = PLAIN.query(f"{words} ERR-7Q41-ZX")
    assert len(terms) == MAX_QUERY_TERMS
    assert {"err_7q41_zx", "7q41"} <= set(terms)


def test_a_query_is_looked_at_for_so_many_words_however_many_its_letters_stand_for() -> None:
    class Counted(frozenset[str]):
        asked = 0

        def __contains__(self, word: object) -> bool:
            Counted.asked += 1
            return super().__contains__(word)

    phrase = "\ufdfa "  # one letter that stands for four words of Arabic
    found = Tokenizer(lambda word: word, Counted()).query(phrase * (2 * MAX_QUERY_CHARACTERS))
    assert found == PLAIN.query(phrase)
    assert Counted.asked <= 2 * MAX_QUERY_WORDS


def test_long_tokens_meet_only_when_they_are_equal() -> None:
    long = "x" * 1_000
    [one], [same], [other] = tokens(long), tokens(long.upper()), tokens(long + "y")
    assert len(one) == MAX_TOKEN
    assert one == same != other


def test_a_text_of_many_pieces_loses_and_cuts_no_word() -> None:
    words = [f"w{n}é" for n in range(3 * PIECE // 5)]
    assert tokens(" ".join(words)) == [f"w{n}e" for n in range(len(words))]


def test_characters_that_grow_when_normalised_are_taken_in_pieces() -> None:
    assert len(set(tokens("\ufdfa " * (PIECE // 2)))) == 4  # one ligature, four words


def test_english_words_meet_their_stems_and_subjects_stay() -> None:
    assert ENGLISH.query("She was running the computers") == ("run", "comput")
    assert ENGLISH.query("fire drill") == ("fire", "drill")
    assert list(ENGLISH.document("runs")) == ["run"]


def test_the_words_of_a_value_are_its_strings_numbers_and_keys_in_order() -> None:
    value = json.loads(
        '{"diet": {"kind": "vegan", "since": 2019}, "likes": ["tea", 1.5, true, null], "": ""}'
    )
    assert text_of(value).split() == ["diet", "kind", "vegan", "since", "2019", "likes", "tea", "1.5"]
    assert text_of("as it is") == "as it is"
    assert text_of(None) == ""
