"""Words of a text and the classes they belong to, and patterns of classes that are looked for in them.

A *lexicon* says which words and phrases belong to which class in a language, e.g. `ignore` and `pay no attention to` to
`override` in English. An entry is one or more words; `word*` stands for every word that begins so, `*word` for every one that ends so. A *pattern* is a row of
classes, all of one language:

    ^override ..6 rules|prompt$

* `a|b` one class or the other;
* `..6` at most six words between the two classes (without it: none), never across the end of a sentence;
* `^` the phrase begins a clause: after punctuation, or after a phrase of the class `lead` ("please", "and");
* `^^` the phrase begins a sentence, or comes after a phrase of the class `notice` ("important:");
* `$` the phrase ends a clause.

Scripts without spaces (Han, kana) count by the character, two characters as one word. Nothing here backtracks: a text is
read once, and a pattern compares sorted positions.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

ANY = "any"
"""The language of words that are the same in all."""

_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_VOWEL_SIGNS = "\u0900-\u0963\u0966-\u0dff"  # of Indic scripts: no word characters for `re`
_SENTENCE_END = "[.!?\u2026](?=[\\s\"')\\]]|$)|[\n;\u3002\u0964\u0965\u061f\u06d4\u2028\u2029]"
_PAUSE = "[,:()\\[\\]{}\"\u201c-\u201f\u00ab\u00bb\u3001\u300c-\u300f\u060c\u061b\u2014\u00a1\u00bf*>#`]|(?<!\\w)[-'\u2013\u2018]"
_TOKEN = re.compile(
    f"(?P<character>[{_CHARACTERS}])|(?P<word>@|(?:(?![{_CHARACTERS}_])[\\w{_VOWEL_SIGNS}])+)"
    f"|(?P<end>{_SENTENCE_END})|(?P<pause>{_PAUSE})"
)
_PIECE = re.compile(rf"[{_CHARACTERS}]|(?:(?![{_CHARACTERS}])[\w@*{_VOWEL_SIGNS}])+")
_WORD, _CHARACTER, _SENTENCE = 2, 1, 1_000
"""Widths: a gap is measured in half words, and no gap of a pattern is as wide as the end of a sentence."""

Span = tuple[int, int]
"""The first word of a phrase, and the one after its last."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A phrase of a lexicon; a star stands for the rest of a word."""

    language: str
    name: str
    words: tuple[str, ...]


class Lexicon:
    """Phrases by language and class. `fold` brings them into the form that texts are compared in."""

    def __init__(self, phrases: Iterable[tuple[str, str, str]], fold: Callable[[str], str]) -> None:
        """`phrases`: language, class, and phrases of it between commas."""
        self._words: dict[str, list[Entry]] = defaultdict(list)
        self._pairs: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._beginnings: dict[str, list[Entry]] = defaultdict(list)
        self._endings: dict[str, list[Entry]] = defaultdict(list)
        for language, name, text in phrases:
            for phrase in fold(text).split(","):
                self._add(Entry(language, name, tuple(_PIECE.findall(phrase))))
        self._beginning_lengths = sorted(set(map(len, self._beginnings)))
        self._ending_lengths = sorted(set(map(len, self._endings)))

    def entries(self, word: str, following: str) -> list[Entry]:
        """Entries that may begin with this word, before that one."""
        found = [*self._words.get(word, ()), *self._pairs.get((word, following), ())]
        for length in self._beginning_lengths:
            found += self._beginnings.get(word[:length], ()) if length <= len(word) else ()
        for length in self._ending_lengths:
            found += self._endings.get(word[-length:], ()) if length < len(word) else ()
        return found

    def _add(self, entry: Entry) -> None:
        first, second = entry.words[0], "".join(entry.words[1:2])
        if first.endswith("*"):
            self._beginnings[first[:-1]].append(entry)
        elif first.startswith("*"):
            self._endings[first[1:]].append(entry)
        elif second and "*" not in second:
            self._pairs[first, second].append(entry)
        else:
            self._words[first].append(entry)


@dataclass(slots=True)
class _Found:
    """What a text has of one language: phrases by class, and the places that begin or end a clause only there."""

    spans: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    clauses: set[int] = field(default_factory=set)
    sentences: set[int] = field(default_factory=set)
    clause_ends: set[int] = field(default_factory=set)


_NOTHING = _Found()


class Reading:
    """A folded text as words, with the phrases of a lexicon that stand in it."""

    def __init__(self, folded: str, lexicon: Lexicon) -> None:
        self._words: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._clauses: set[int] = set()
        self._sentences: set[int] = set()
        self._split(folded)
        self._found: dict[str, _Found] = defaultdict(_Found)
        self._classify(lexicon)
        for found in self._found.values():
            self._mark_leads(found)

    @property
    def languages(self) -> Collection[str]:
        return self._found.keys()

    def spans(self, language: str, names: Iterable[str]) -> list[Span]:
        """Phrases of these classes in a language; for `ANY` in all."""
        spoken = self._found.keys() if language == ANY else (language, ANY)
        return [
            span
            for one in spoken
            if one in self._found
            for name in names
            for span in self._found[one].spans.get(name, ())
        ]

    def begins_clause(self, place: int, language: str) -> bool:
        return place in self._clauses or place in self._of(language).clauses

    def begins_sentence(self, place: int, language: str) -> bool:
        return place in self._sentences or place in self._of(language).sentences

    def ends_clause(self, place: int, language: str) -> bool:
        return place in self._clauses or place in self._of(language).clause_ends

    def _of(self, language: str) -> _Found:
        return self._found.get(language, _NOTHING)

    def start(self, span: Span) -> int:
        """Where a phrase begins, in half words."""
        return self._starts[span[0]]

    def end(self, span: Span) -> int:
        """Where the gap after it begins."""
        return self._ends[span[1] - 1]

    def _split(self, folded: str) -> None:
        at = 0
        clause = sentence = True
        for match in _TOKEN.finditer(folded):
            kind = match.lastgroup
            if kind == "end":
                at += 0 if sentence else _SENTENCE
                clause = sentence = True
            elif kind == "pause":
                clause = True
            else:
                self._note(len(self._words), clause=clause, sentence=sentence)
                clause = sentence = False
                self._words.append(match[0])
                self._starts.append(at)
                at += _CHARACTER if kind == "character" else _WORD
                self._ends.append(at)
        self._note(len(self._words), clause=True, sentence=True)

    def _note(self, place: int, *, clause: bool, sentence: bool) -> None:
        if clause:
            self._clauses.add(place)
        if sentence:
            self._sentences.add(place)

    def _classify(self, lexicon: Lexicon) -> None:
        known: dict[tuple[str, str], list[Entry]] = {}
        masked: dict[str, int] = {}
        for start, pair in enumerate(pairwise([*self._words, ""])):
            entries = known.get(pair)
            if entries is None:
                entries = known[pair] = lexicon.entries(*pair)
            met = [entry for entry in entries if self._has(entry.words, start)]
            for entry in met:
                if entry.name == "noise":
                    masked[entry.language] = max(masked.get(entry.language, 0), start + len(entry.words))
            for entry in met:
                if start >= masked.get(entry.language, 0):
                    self._found[entry.language].spans[entry.name].append((start, start + len(entry.words)))

    def _has(self, phrase: tuple[str, ...], start: int) -> bool:
        """Whether a phrase whose first word stands at `start` stands there whole."""
        if len(phrase) == 1:
            return True
        words = self._words[start : start + len(phrase)]
        return len(words) == len(phrase) and all(map(_is_form, words, phrase))

    def _mark_leads(self, found: _Found) -> None:
        for start, end in found.spans.get("lead", ()):
            found.clauses.add(end)
            found.clause_ends.add(start)
        for start, end in found.spans.get("notice", ()):
            if start in self._clauses:
                found.clauses.add(end)
                found.sentences.add(end)


def _is_form(word: str, written: str) -> bool:
    if written[-1] == "*":
        return word.startswith(written[:-1])
    return word.endswith(written[1:]) if written[0] == "*" else word == written


@dataclass(frozen=True, slots=True)
class Step:
    names: tuple[str, ...]
    gap: int
    begins: str
    ends: bool


class Pattern:
    """A row of classes (see above), in some languages or, without any named, in each. In `ANY` it may mix them."""

    def __init__(self, text: str, languages: frozenset[str] = frozenset()) -> None:
        self.languages = languages
        self.steps = tuple(_steps(text))

    def found_in(self, reading: Reading) -> bool:
        spoken = self.languages or frozenset(reading.languages) - {ANY}
        return any(self._found(reading, language) for language in spoken)

    def _found(self, reading: Reading, language: str) -> bool:
        ends: list[int] | None = None
        for step in self.steps:
            spans = [
                span
                for span in reading.spans(language, step.names)
                if _fits(step, span, reading, language)
                and (ends is None or _reached(ends, reading.start(span), step.gap))
            ]
            if not spans:
                return False
            ends = sorted(map(reading.end, spans))
        return True


def _steps(text: str) -> Iterable[Step]:
    gap = 0
    for part in text.split():
        if part.startswith(".."):
            gap = int(part[2:]) * _WORD
            continue
        bare = part.lstrip("^")
        names = tuple(bare.rstrip("$").split("|"))
        yield Step(names, gap, begins=part[: len(part) - len(bare)], ends=bare.endswith("$"))
        gap = 0


def _fits(step: Step, span: Span, reading: Reading, language: str) -> bool:
    if step.begins == "^" and not reading.begins_clause(span[0], language):
        return False
    if step.begins == "^^" and not reading.begins_sentence(span[0], language):
        return False
    return not step.ends or reading.ends_clause(span[1], language)


def _reached(ends: list[int], start: int, gap: int) -> bool:
    """Whether a phrase that begins at `start` follows one of `ends` closely enough."""
    place = bisect_left(ends, start - gap)
    return place < len(ends) and ends[place] <= start
