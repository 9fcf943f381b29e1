"""What a reader may not see changes nothing of what they see: scores, order, which chunk, which version.

A world has several tenants, and readers with the rules that the service makes for them. Some questions are answered; then
documents outside the reader's rule are added, changed, removed; the same questions have the same answers to the last bit.
And the answers are those of a few lines that look at nothing but the documents inside.
"""

import os
import random
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.gate import Look
from factbook.domain.filters import AllOf, FieldValue, Filter, Not, Range, evaluate
from factbook.domain.retrieval.documents import Chunk, Put, Tombstone
from factbook.domain.retrieval.searchable import scope_fields
from factbook.domain.scope import Scope
from factbook.ports.retrieval.index import Hit, KeywordLeg, Leg, SearchIndex, VectorLeg
from factbook.usecases.retrieval.retrieve import Question, asked_rule

WORDS = (
    "river",
    "river",
    "river",
    "pump",
    "pump",
    "valve",
    "err_7q41_zx",
    "東京",
    "the",
    "café",
    "zinc",
    "oak",
)
LIMIT, QUESTIONS = 300, 12
WORLDS = int(os.environ.get("INTERFERENCE_WORLDS", "0"))
"""How many worlds, where somebody waits for more than a few."""
LOOK = Look("2026-06-01T00:00:00.000Z", "recalled")
ANN, BOT = Actor(kind="user", id="ann"), Actor(kind="agent", id="bot")
AXES = 8

Texts = Sequence[Sequence[str]]
World = dict[tuple[str, str], Put]


class NonInterferenceContract:
    """Subclasses give `index`: one with an active index of eight dimensions."""

    index: SearchIndex
    worlds = 84
    by_words = True
    """Whether the index finds by words; one that does not has one vector for a record, and no scores of the reference's."""

    def test_what_a_reader_may_not_see_changes_nothing_of_what_they_see(self) -> None:
        asked = Counter[str]()

        @settings(max_examples=WORLDS or self.worlds, phases=(Phase.generate,))
        @given(st.integers(0, 2**64))
        def holds(seed: int) -> None:
            chance = random.Random(seed)
            tenants = [f"{uuid.uuid4()}-{at}" for at in range(3)]
            own, rule = tenants[0], _rule(chance, tenants[0])
            world = {(each.tenant, each.id): each for each in _documents(chance, tenants, 40)}
            self._apply([*world.values()])
            legs = [leg for _ in range(QUESTIONS) for leg in _questions(chance, rule)]
            legs = [leg for leg in legs if self.by_words or isinstance(leg, VectorLeg)]
            before = self.index.search(own, legs, timeout=60)
            changes = _outside(chance, world, own, rule, tenants)
            self._apply(changes)
            assert self.index.search(own, legs, timeout=60) == before
            inside = [each for each in world.values() if _keeps(rule, own, each)]
            for leg, answer in zip(legs, before, strict=True):
                assert isinstance(answer, tuple)
                if self.by_words:
                    _agree(answer, _reference(leg, inside))
                asked["questions"] += 1
                asked["answered"] += bool(answer)
            left = {**world, **{(each.tenant, each.id): each for each in changes}}
            self._apply([Tombstone(*place, 3) for place in left])

        holds()
        assert asked["answered"] > asked["questions"] / 3

    @pytest.mark.parametrize("outside", ["of another tenant", "of another project"])
    def test_a_word_that_only_others_use_weighs_as_if_they_did_not(self, outside: str) -> None:
        own, other = f"{uuid.uuid4()}-own", f"{uuid.uuid4()}-other"
        rule = asked_rule(_reader(own), Question("keyword"), LOOK)
        inside = {**scope_fields(Scope(tenant_id=own, project_id="p1")), "source": "facts"}
        self._apply([_put(own, f"own{at}", [[word] * 3], inside) for at, word in enumerate(WORDS)])
        legs: list[Leg] = [KeywordLeg(("zinc", "oak"), rule, 10)]
        before = self.index.search(own, legs, timeout=60)
        fields, tenant = {**inside, "container": "P:p2", "s_project": "p2"}, own
        if outside == "of another tenant":
            fields, tenant = inside, other
        crowd = [_put(tenant, f"other{at}", [["zinc"] * 9, ["zinc", "oak"]], fields) for at in range(200)]
        self._apply(crowd)
        assert self.index.search(own, legs, timeout=60) == before
        self._apply([Tombstone(each.tenant, each.id, 9) for each in crowd])
        assert self.index.search(own, legs, timeout=60) == before

    def _apply(self, changes: Sequence[Put | Tombstone]) -> None:
        assert self.index.apply(changes) == []
        self.index.refresh()


def _reader(tenant: str) -> Principal:
    return Principal(tenant, ANN, reads_projects=frozenset({"p1"}))


def _rule(chance: random.Random, tenant: str) -> Filter:
    reader = chance.choice(
        (
            Principal(tenant, ANN, admin=True),
            _reader(tenant),
            Principal(tenant, ANN, writes_projects=frozenset({"p1", "p2"})),
            Principal(tenant, ANN, reads_orgs=frozenset({"o"})),
            Principal(tenant, BOT, reads_projects=frozenset({"p2"}), agent_id="bot"),
        )
    )
    question = Question(
        "keyword",
        types=chance.choice(((), ("acme.note",))),
        trust=chance.choice(((), ("verified",))),
        agent=chance.choice((None, "bot")),
    )
    more: tuple[Filter, ...] = chance.choice(((), (Not(Range("revision", gt=2)),)))
    return AllOf((asked_rule(reader, question, LOOK), *more))


def _documents(chance: random.Random, tenants: Sequence[str], count: int) -> list[Put]:
    return [_document(chance, chance.choice(tenants), f"r{at}", 1) for at in range(count)]


def _document(chance: random.Random, tenant: str, record: str, version: int) -> Put:
    scope = Scope(
        tenant_id=tenant,
        user_id=chance.choice((None, None, "ann", "bob")),
        org_id=chance.choice((None, None, "o")),
        project_id=chance.choice((None, "p1", "p1", "p2", "p3")),
    )
    fields: dict[str, FieldValue] = {
        **scope_fields(scope),
        "source": chance.choice(("facts", "facts", "facts", "conversations")),
        "type": chance.choice(("acme.note", "acme.other")),
        "trust": chance.choice(("asserted", "verified")),
        "revision": chance.randint(1, 3),
    }
    if chance.random() < 0.2:
        fields |= {"agent": chance.choice(("bot", "else")), "reach": chance.choice(("user", "account"))}
    if chance.random() < 0.1:
        fields["review"] = "pending"
    if chance.random() < 0.1:
        fields["expires_at"] = chance.choice((1, 2**53))
    texts = [
        [chance.choice(WORDS) for _ in range(chance.choice((0, 1, 3, 6, 12, 25, 50)))]
        for _ in range(chance.choice((1, 1, 1, 2, 3)))
    ]
    return _put(tenant, record, texts, fields, version, chance)


def _put(
    tenant: str,
    record: str,
    texts: Texts,
    fields: Mapping[str, FieldValue],
    version: int = 1,
    chance: random.Random | None = None,
) -> Put:
    pieces = (
        Chunk(" ".join(words), _direction(chance) if chance is not None and chance.random() < 0.8 else None)
        for words in texts
    )
    return Put(tenant, record, version, tuple(pieces), fields)


def _direction(chance: random.Random) -> tuple[float, ...]:
    return tuple(chance.gauss(0, 1) for _ in range(AXES))


def _questions(chance: random.Random, rule: Filter) -> list[Leg]:
    terms = dict.fromkeys(chance.choice(WORDS) for _ in range(chance.randint(1, 6)))
    return [KeywordLeg(tuple(terms), rule, LIMIT), VectorLeg(_direction(chance), rule, LIMIT)]


def _outside(
    chance: random.Random, world: World, own: str, rule: Filter, tenants: Sequence[str]
) -> list[Put | Tombstone]:
    """Changes of documents that the rule does not keep, to such that it does not keep either."""
    strangers = [place for place, each in world.items() if not _keeps(rule, own, each)]
    changes: list[Put | Tombstone] = [Tombstone(*place, 2) for place in strangers if chance.random() < 0.3]
    removed = {(change.tenant, change.id) for change in changes}
    left = [place for place in strangers if place not in removed]
    for tenant, record in [*left, *((chance.choice(tenants), f"new{at}") for at in range(30))]:
        made = _document(chance, tenant, record, 2)
        if not _keeps(rule, own, made):
            changes.append(made)
    return changes


def _keeps(rule: Filter, tenant: str, document: Put) -> bool:
    named = {**document.fields, "tenant": document.tenant, "id": document.id}
    return document.tenant == tenant and evaluate(rule, named)


def _reference(leg: Leg, inside: Sequence[Put]) -> dict[str, float]:
    """The score of the best chunk of each record that a leg finds, from the documents inside its rule alone."""
    chunks = [(each.id, piece) for each in inside for piece in each.chunks]
    if isinstance(leg, VectorLeg):
        return _best((record, _cosine(leg.vector, piece.vector)) for record, piece in chunks if piece.vector)
    bags = [(record, Counter(piece.tokens.split())) for record, piece in chunks if piece.tokens]
    mean = sum(bag.total() for _, bag in bags) / max(1, len(bags))
    scores = []
    for record, bag in bags:
        score = 0.0
        for term in leg.terms:
            if bag[term]:
                held = sum(term in other for _, other in bags)
                often = max(level for level in (1, 2, 3, 4, 6, 9, 14) if bag[term] >= level)
                weight = log(1 + (len(bags) - held + 0.5) / (held + 0.5))
                score += weight * 2.2 * often / (often + 1.2 * (0.25 + 0.75 * bag.total() / mean))
        if score:
            scores.append((record, score))
    return _best(scores)


def _best(scores: Iterable[tuple[str, float]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for record, score in scores:
        best[record] = max(score, best.get(record, -2.0))
    return best


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def _agree(answer: tuple[Hit, ...], reference: Mapping[str, float]) -> None:
    assert {hit.id: hit.score for hit in answer} == pytest.approx(reference, abs=1e-5)
    assert list(answer) == sorted(answer, key=lambda hit: (-hit.score, hit.id))
