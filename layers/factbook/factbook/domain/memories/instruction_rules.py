"""The rules: which rows of words read like an instruction. How a pattern is written is said in `words`, what is in a class in
`instruction_words`.
"""

from dataclasses import dataclass
from enum import StrEnum

from factbook.domain.memories.words import ANY, Pattern


class Reason(StrEnum):
    """Why a text waits."""

    IMPERATIVE = "imperative-to-assistant"
    ROLE_MARKER = "role-marker"
    PROMPT_TALK = "prompt-talk"
    TOOL_TALK = "tool-talk"
    HIDDEN = "hidden-characters"
    ENCODED = "encoded-blob"
    MARKUP = "model-markup"


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is for tests and people. One of the patterns has to be found."""

    name: str
    reason: Reason
    patterns: tuple[Pattern, ...]


_PROMPT, _IMPERATIVE, _TOOL = Reason.PROMPT_TALK, Reason.IMPERATIVE, Reason.TOOL_TALK
_VERB_LAST = frozenset({"de", "hi", "ja", "ko", "tr"})
"""Languages in which a command may end its clause."""


def _rule(name: str, reason: Reason, *patterns: str) -> Rule:
    return Rule(name, reason, tuple(map(_pattern, patterns)))


def _pattern(text: str) -> Pattern:
    """A name before a colon keeps a pattern to some languages: to `last` those, to `zh` one. `mixed` lets its words be of several."""
    kept, _, row = text.rpartition(":")
    languages = {"": frozenset[str](), "last": _VERB_LAST, "mixed": frozenset({ANY})}
    return Pattern(row, languages.get(kept, frozenset({kept})))


RULES: tuple[Rule, ...] = (
    # About the model's own instructions.
    _rule(
        "override-rules", _PROMPT, "^override ..8 rules|told|prompt", "override ..2 before ..3 rules",
        "override ..2 told", "^override ..1 what ..5 was_said", "last: rules|told ..3 override$", "last: before ..3 rules ..4 override",
        "mixed: ^override ..4 rules|prompt|told",
    ),
    _rule(
        "rules-void", _PROMPT, "before ..3 rules ..4 void", "rules ..1 before ..4 void", "prompt ..3 void",
        "precedence ..5 rules", "last: rules ..2 precedence",
    ),
    _rule(
        "reveal-prompt", _PROMPT, "^reveal|third_person|tell ..8 prompt", "last: prompt ..6 reveal",
        "mixed: ^reveal ..3 prompt|your_prompt",
    ),
    _rule("talk-to-model", _PROMPT, "talk", "^^heading$", "your_prompt", "i_order", "enter ..1 mode"),
    # Who the model is, and what it must do.
    _rule("you-must", _IMPERATIVE, "you_must", "they_must ..12 say", "^permit say|reveal|send"),
    _rule("second-person", _IMPERATIVE, "you"),
    _rule(
        "you-are", _IMPERATIVE, "^you_are", "you_are ..4 assistant|free", "plainly", "addressed ..20 duty$",
    ),
    _rule(
        "assistant-must", _IMPERATIVE, "^^assistant ..2 must", "assistant ..1 must ..4 say|always|act",
        "^^assistant ..6 must ..2 say|act|maybe|always", "assistant ..3 always ..1 say",
        "agent must ..4 say|always", "last: assistant|agent ..14 say|must$", "must|one_must ..1 assistant",
    ),
    _rule("called-by-name", _IMPERATIVE, "^^vocative ^act|order|maybe|say|command|override|reveal|send"),
    _rule("pretend", _IMPERATIVE, "^pretend", "last: pretend$"),
    _rule(
        "obey", _IMPERATIVE, "^obey ..3 only ..3 rules|data|told", "^only ..2 obey", "^obey ..3 only$",
        "^obey ..6 anything", "^obey ..1 only", "^obey|act|command|run|third_person ..4 steps",
        "last: steps ..3 final|act$",
    ),
    # Commands that only an assistant is given, or in a form that only a command has.
    _rule(
        "order", _IMPERATIVE, "^order", "^^command", "^please ..2 maybe|act|chore|reveal|send|override",
        "last: final|order$",
    ),
    _rule("request", _IMPERATIVE, "request", "speak ..4 ban", "speak ..1 request_end$"),
    _rule(
        "answer-so", _IMPERATIVE, "^answer how", "^answer|order|maybe|act|command|third_person ..6 free",
        "^^act|maybe ..4 style", "^^act|maybe|command|answer ..3 language",
    ),
    _rule(
        "say-to-user", _IMPERATIVE, "^maybe|third_person|tell ..2 user", "^maybe|tell ..1 each",
        "last: user ..6 maybe|act$",
    ),
    _rule(
        "every-reply", _IMPERATIVE, "^maybe|act|third_person|command ..12 reply", "reply ..3 must",
        "^replies ..1 must", "^reply ..4 maybe", "reply ..4 from_now",
        "last: reply ..10 maybe|act|order|final|must$", "zh: reply ..4 maybe|act", "ar: must ..3 reply",
        "ko: reply ..8 polite$",
    ),
    # Standing orders.
    _rule(
        "always", _IMPERATIVE, "^always ..1 order|maybe|say", "^^always act|chore|command",
        "^maybe|third_person ..6 always", "^^act|command ..6 always",
        "^must ..1 always ..2 say|order|maybe", "^one_must ..2 always ..3 say",
        "^one_must ..2 say ..2 always", "last: ^always ..5 maybe|act|order|say|final$",
        "zh: ^always ..6 maybe", "ja: always ..8 koto$", "ko: always ..8 final|polite$",
    ),
    _rule(
        "from-now-on", _IMPERATIVE, "from_now ..6 order|maybe|act|say|reply|command|third_person|tell",
        "^order|maybe|act|third_person|tell ..8 from_now", "from_now ..2 you_do", "ko: from_now ..10 final|polite$",
    ),
    _rule(
        "never-say", _IMPERATIVE, "^do_not ..1 say", "^do_not ..1 act|maybe ..4 user|each", "never_do",
        "^secretive ..6 not", "last: never_last$",
    ),
    _rule(
        "must-stay-unsaid", _IMPERATIVE, "unsaid", "user|who ..2 be_told", "user|who ..10 be_treated",
        "banned ..2 say", "user|who may_not ..6 learn", "nobody ..1 must|may_not ..6 learn",
        "^mentioning ..8 banned",
    ),
    _rule("conceal", _IMPERATIVE, "^hush", "last: user ..6 hush$"),
    _rule(
        "when-asked", _IMPERATIVE, "^if ..20 ^order|maybe|third_person|tell|never_do|command",
        "^if ..20 ^do_not ..1 say", "^order|maybe|third_person|tell ..12 asked", "^asked ..8 answer|maybe",
        "^if ..20 then", "^if ..6 asked_for", "^if ..3 who|user ..16 ^act", "^if ..6 asks ..12 ^act",
        "^if when_doing ..10 ^act|maybe", "^act|maybe|order ..12 if when_doing",
        "^doubt ..2 act|maybe|third_person|command|say|order", "^doubt ..5 say$",
        "last: condition ..12 order|maybe|act|final$", "ko: condition ..12 polite$",
    ),
    # What does harm when it is done.
    _rule(
        "give-secrets", _IMPERATIVE, "^reveal|send|third_person ..8 secret",
        "last: secret ..6 reveal|send$",
    ),
    _rule(
        "send-data", _IMPERATIVE, "^send ..6 data", "^send ..2 all", "^send ..10 address",
        "last: data ..10 send$",
    ),
    _rule(
        "skip-checks", _IMPERATIVE, "^skip ..3 check",
        "^act|order|maybe|grant|command|third_person ..10 unasked", "^unasked", "last: check ..3 skip$",
        "last: unasked ..8 act|order|maybe|final$",
        "ko: unasked ..8 polite$",
    ),
    _rule(
        "grant-all", _IMPERATIVE, "^grant|third_person|command ..8 anything",
        "^^act|command|maybe ..8 each", "^each_time ..5 ^act|command|maybe", "^grant ..4 access",
        "^destroy everything", "^pay ..8 account",
    ),
    _rule("call-tool", _TOOL, "^call ..4 tool", "^always ..1 call ..4 tool", "^run ..2 code", "last: tool ..6 call$"),
)  # fmt: skip
