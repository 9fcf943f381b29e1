"""What reads like an instruction to a model rather than like a fact about the world.

A memory that an agent wrote stands in front of a model in every later conversation. One that tells the model what to do
is how a stranger's words would become the agent's orders, so it waits for an administrator. These rules decide which:
they are the same for everybody, and look at nothing but the text. They are a speed bump with a person behind it, no
guarantee (docs/instructions.md).
"""

from collections.abc import Iterator
from functools import lru_cache

from factbook.domain.memories.concealed import (
    LONG,
    decoded_texts,
    has_escaped_letters,
    has_hidden_characters,
)
from factbook.domain.memories.instruction_rules import RULES, Reason, Rule
from factbook.domain.memories.markers import (
    has_chat_message,
    has_model_markup,
    has_role_marker,
    is_disguised,
)
from factbook.domain.memories.readings import fold, readings, unescaped
from factbook.domain.memories.words import Lexicon, Reading


def reads_like_instruction(text: str) -> Reason | None:
    """Why a text that an agent wrote has to wait; None when it reads like a plain statement.

    The work grows with the length of the text and no faster.
    """
    if has_hidden_characters(text):
        return Reason.HIDDEN
    if has_escaped_letters(text):
        return Reason.ENCODED
    for said in decoded_texts(text):
        if len(said) >= LONG or _of_clear_text(said):
            return Reason.ENCODED
    return _of_clear_text(text)


def content_reads_like_instruction(content: object) -> Reason | None:
    """The same of any JSON value: of all its strings, keys included, each as a line, and of its values as one line."""
    if has_chat_message(content):
        return Reason.ROLE_MARKER
    values = list(_strings(content, keys=False))
    found = reads_like_instruction("\n".join(_strings(content, keys=True)))
    return found or (reads_like_instruction(" ".join(values)) if len(values) > 1 else None)


def rules_met(text: str) -> Iterator[Rule]:
    """Every rule of words that a text meets, in any of its readings."""
    for folded in readings(text):
        reading = Reading(folded, lexicon())
        yield from (rule for rule in RULES if any(pattern.found_in(reading) for pattern in rule.patterns))


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The words of all languages, read when they are first needed: a function that judges no text pays nothing for them."""
    from factbook.domain.memories.instruction_words import WORDS

    return Lexicon(
        ((language, name, text) for language, classes in WORDS.items() for name, text in classes.items()),
        fold,
    )


def _of_clear_text(text: str) -> Reason | None:
    clear = fold(unescaped(text))
    if has_model_markup(clear):
        return Reason.MARKUP
    if has_role_marker(clear, _is_speech):
        return Reason.ROLE_MARKER
    rule = next(rules_met(text), None)
    if rule is not None:
        return rule.reason
    return Reason.PROMPT_TALK if is_disguised(clear) else None


def _is_speech(said: str) -> bool:
    reading = Reading(said, lexicon())
    return any(reading.spans(language, ["speech"]) for language in reading.languages)


def _strings(content: object, *, keys: bool) -> Iterator[str]:
    match content:
        case str():
            yield content
        case dict():
            for key, inner in content.items():
                if keys:
                    yield key
                yield from _strings(inner, keys=keys)
        case list():
            for inner in content:
                yield from _strings(inner, keys=keys)
