"""What reads like an instruction to a model rather than like a fact about the world.

A memory that an agent wrote stands in front of a model in every later conversation. One that tells the model what to do
is how a stranger's words would become the agent's orders, so it waits for an administrator. These rules decide which:
they are few, the same for everybody, and look at nothing but the text. They are a speed bump with a person behind it,
no guarantee (docs/instructions.md).

The rules are patterns of word classes; the words of each language are in `instruction_words`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from factbook.domain.memories.concealed import (
    LONG,
    decoded_texts,
    has_escaped_letters,
    has_hidden_characters,
)
from factbook.domain.memories.instruction_words import WORDS
from factbook.domain.memories.readings import fold, readings, unescaped
from factbook.domain.memories.words import ANY, Lexicon, Pattern, Reading


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
    """`name` is for tests and people; `patterns`: one of them has to be found (see `words`)."""

    name: str
    reason: Reason
    patterns: tuple[Pattern, ...]


def _rule(name: str, reason: Reason, *patterns: str) -> Rule:
    return Rule(name, reason, tuple(map(_pattern, patterns)))


def _pattern(text: str) -> Pattern:
    kept, _, row = text.rpartition(":")
    languages = {"": frozenset[str](), "last": _VERB_LAST, "mixed": frozenset({ANY})}
    return Pattern(row, languages.get(kept, frozenset({kept})))


_PROMPT, _IMPERATIVE, _TOOL = Reason.PROMPT_TALK, Reason.IMPERATIVE, Reason.TOOL_TALK
_VERB_LAST = frozenset({"de", "hi", "ja", "tr"})
"""Languages in which a command may end its clause; `last:` before a pattern keeps it to them, `mixed:` lets its words be of several."""

RULES: tuple[Rule, ...] = (
    # About the model's own instructions.
    _rule(
        "override-rules", _PROMPT, "^override ..8 rules|told|prompt", "override ..2 before ..3 rules", "override ..2 told",
        "last: rules|told ..3 override$", "last: before ..3 rules ..4 override", "mixed: ^override ..4 rules|prompt|told",
    ),
    _rule("rules-void", _PROMPT, "before ..3 rules ..4 void", "rules ..1 before ..4 void", "prompt ..3 void"),
    _rule("reveal-prompt", _PROMPT, "^reveal|third|tell ..8 prompt", "last: prompt ..6 reveal", "mixed: ^reveal ..3 prompt|yours"),
    _rule("talk-to-model", _PROMPT, "talk", "^^heading$", "yours", "iorder", "modeverb ..1 mode"),
    # Who the model is, and what it must do.
    _rule("you-must", _IMPERATIVE, "youmust", "theymust ..12 say", "you", "^permit say|reveal|send"),
    _rule("you-are", _IMPERATIVE, "^youare", "youare ..4 assistant|free", "plainly", "addressed ..20 duty$"),
    _rule(
        "assistant-must", _IMPERATIVE, "^^assistant ..2 must", "assistant ..1 must ..4 say|always|act",
        "^^assistant ..6 must ..2 say|act|maybe|always", "assistant ..3 always ..1 say", "agent must ..4 say|always",
        "last: assistant|agent ..14 say|must$", "must|mustdo ..1 assistant",
    ),
    _rule("called-by-name", _IMPERATIVE, "^^vocative ^act|order|maybe|say|command|override|reveal|send"),
    _rule("pretend", _IMPERATIVE, "^pretend", "last: pretend$"),
    _rule("obey", _IMPERATIVE, "^obey ..3 only ..3 rules|data|told", "^only ..2 obey", "^obey ..3 only$", "^obey ..6 anything", "^obey ..1 only"),
    # Commands that only an assistant is given, or in a form that only a command has.
    _rule("order", _IMPERATIVE, "^order", "^^command|polite", "^please ..3 maybe|act", "last: final|order$"),
    _rule("request", _IMPERATIVE, "request", "speak ..4 ban", "speak ..1 shallend$"),
    _rule("answer-so", _IMPERATIVE, "^answer how", "^answer|order|maybe|act|command|third ..6 free", "^^act|maybe ..4 style"),
    _rule("say-to-user", _IMPERATIVE, "^maybe|third|tell ..1 user", "^maybe|tell ..1 each", "last: user ..6 maybe|act$"),
    _rule(
        "every-reply", _IMPERATIVE, "^maybe|act|third|command ..12 reply", "reply ..3 must", "^replynoun ..1 must",
        "^reply ..4 maybe", "reply ..4 fromnow", "last: reply ..10 maybe|act|order|final|must$", "zh: reply ..4 maybe|act",
        "ar: must ..3 reply",
    ),
    # Standing orders.
    _rule(
        "always", _IMPERATIVE, "^always ..1 order|maybe|say", "^^always act|chore|command", "^maybe|third ..6 always",
        "^^act|command ..6 always", "^must ..1 always ..2 say|order|maybe", "^mustdo ..2 always ..3 say", "^mustdo ..2 say ..2 always",
        "last: ^always ..5 maybe|act|order|say|final$", "zh: ^always ..6 maybe", "ja: always ..8 koto$",
    ),
    _rule(
        "from-now-on", _IMPERATIVE, "fromnow ..6 order|maybe|act|say|reply|command|third|tell",
        "^order|maybe|act|third|tell ..8 fromnow",
    ),
    _rule("never-say", _IMPERATIVE, "^dont ..1 say", "^dont ..1 act|maybe ..4 user|each", "neverdo", "^secretive ..6 no", "last: neverlast$"),
    _rule(
        "must-stay-unsaid", _IMPERATIVE, "unsaid", "user|who ..2 betold", "user|who maynot ..6 learn", "nobody ..1 must|maynot ..6 learn", "^mentioning ..8 banned",
    ),
    _rule("conceal", _IMPERATIVE, "^hush", "last: user ..6 hush$"),
    _rule(
        "when-asked", _IMPERATIVE, "^if ..20 ^order|maybe|third|tell|neverdo|command", "^if ..20 ^dont ..1 say",
        "^order|maybe|third|tell ..12 asked", "^asked ..8 answer|maybe", "^if ..20 then", "^if ..3 who|user ..16 ^act",
        "^if ..6 asks ..12 ^act", "^if doing ..10 ^act", "last: condition ..12 order|maybe|act|final$",
    ),
    # What does harm when it is done.
    _rule("give-secrets", _IMPERATIVE, "^reveal|send|third ..8 secret", "last: secret ..6 reveal|send$"),
    _rule("send-data", _IMPERATIVE, "^send ..6 data", "^send ..2 all", "last: data ..10 send$"),
    _rule(
        "skip-checks", _IMPERATIVE, "^skip ..3 check", "^act|order|maybe|grant|command|third ..10 unasked", "^unasked",
        "last: check ..3 skip$", "last: unasked ..8 act|order|maybe|final$",
    ),
    _rule("grant-all", _IMPERATIVE, "^grant|third|command ..8 anything", "^^act|command|maybe ..8 each", "^grant ..4 access", "^destroy everything", "^pay ..8 account"),
    _rule("call-tool", _TOOL, "^call ..4 tool", "^run ..2 code", "last: tool ..6 call$"),
)  # fmt: skip

_MARKUP = re.compile(
    r"<[|!/\s]{0,3}(?:system|assistant|instructions?|memor(?:y|ies)|prompt|tool[ -]?(?:calls?|results?|use)|function[ -]?calls?|thinking"
    r"|developer|im[ -]start|im[ -]end|start of turn|end of turn|eot|bos|eos|sys)\b[^<>\n]{0,200}>"
    r"|</\s?(?:user|human|important|admin|policy|rules?|context|secret|override|s|invoke|parameter)\s?>"
    r"|<!--|<\||\|>|<<\s?sys|\[\s?/?\s?inst\s?\]|\[\s?/?\s?system\b[^\]\n]{0,40}\]|```\s?(?:system|instructions?|prompt)\b|\{\{[#/~ ]{0,3}(?:system|assistant)\b"
    r"|!\[[^\]\n]{0,200}\]\(https?://[^)\s]{0,300}\?"
)
_ROLE_KEY = re.compile(r"[\"']?role[\"']?\s{0,3}[:=]\s{0,3}[\"'](?:system|assistant|developer|tool)[\"']")
_ROLE_HEADING = re.compile(
    r"(?m)^[ \t]{0,8}#{1,6}[ \t]{0,4}(?:system|assistant|instructions?|new instructions?|prompt|response|human|user|developer)(?: (?:prompt|message|instructions?))?[ \t]{0,4}:?[ \t]{0,4}$"
)
_SPEAKERS = {
    "model": "assistant|ai|bot|chatbot|model|gpt|claude|assistent|ki|ia|asistente|assistente|ассистент|ии|asystent|asistan|yapay zeka|المساعد|सहायक|助手|アシスタント|ai assistant|ai助手",
    "person": "user|human|customer|nutzer|benutzer|kunde|utilisateur|usuario|utente|gebruiker|пользователь|uzytkownik|kullanici|المستخدم|उपयोगकर्ता|用户|ユーザー",
    "system": "system|systeme|sistema|systeem|система|sistem|النظام|सिस्टम|系统|システム|developer|system prompt|system message|tool|function",
}
_TURN = re.compile(
    r"(?:^|[\n.!?。。])[ \t>*#\[(\"'-]{0,6}(?:"
    + "|".join(f"(?P<{role}>{names})" for role, names in _SPEAKERS.items())
    + r")[\])*]{0,3}[ \t]{0,2}:(?P<said>[^\n]{0,300})"
)
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_COMPACT = re.compile(
    "(?:ignor(?:e|a|ez|iere|era|ieren)|disregard|forget|override|bypass|vergiss|oubliez?|olvida|esqueca|dimentica|negeer)"
    "(?:all|any|the|of|your|my|these|toutes|tous|les|todas|todos|las|os|as|tutte|le|alle|deine|je|vos|tes|tus){0,4}"
    "(?:previous|prior|above|earlier|preceding|system|safety|your|vorherigen|bisherigen|eerdere|vorige)?"
    "(?:instruction|prompt|guideline|directive|rules|anweisung|regeln|consigne|instruc|istruzioni|instructie)"
)
_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_SPELLED_OUT = re.compile(r"(?<!\w)[^\W\d_](?:[ .\-_*][^\W\d_]){11,}(?!\w)")


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    return Lexicon(
        (
            (language, name, phrase)
            for language, classes in WORDS.items()
            for name, phrases in classes.items()
            for phrase in phrases.split(", ")
        ),
        fold,
    )


def reads_like_instruction(text: str) -> Reason | None:
    """Why a text that an agent wrote has to wait; None when it reads like a plain statement. Linear in the length of the text."""
    if has_hidden_characters(text):
        return Reason.HIDDEN
    if has_escaped_letters(text):
        return Reason.ENCODED
    for said in decoded_texts(text):
        if len(said) >= LONG or _of_clear_text(said):
            return Reason.ENCODED
    return _of_clear_text(text)


def content_reads_like_instruction(content: object) -> Reason | None:
    """The same of any JSON value: all its strings, keys included, each as a line and all in one line, as a model would read them."""
    if _has_role(content):
        return Reason.ROLE_MARKER
    strings = list(_strings(content))
    found = reads_like_instruction("\n".join(strings))
    return found or (reads_like_instruction(" ".join(strings)) if len(strings) > 1 else None)


def rules_met(text: str) -> Iterator[Rule]:
    """Every rule of words that a text meets, in any of its readings."""
    for folded in readings(text):
        reading = Reading(folded, lexicon())
        yield from (rule for rule in RULES if any(pattern.found_in(reading) for pattern in rule.patterns))


def _of_clear_text(text: str) -> Reason | None:
    clear = fold(unescaped(text))
    if _MARKUP.search(clear):
        return Reason.MARKUP
    if _ROLE_KEY.search(clear) or _ROLE_HEADING.search(clear) or _is_transcript(clear):
        return Reason.ROLE_MARKER
    rule = next(rules_met(text), None)
    if rule is not None:
        return rule.reason
    return Reason.PROMPT_TALK if _is_disguised(clear) else None


def _is_transcript(folded: str) -> bool:
    """Turns of a conversation: two speakers, or one that is a model or the system and speaks."""
    roles = set()
    for turn in _TURN.finditer(folded):
        role = str(
            turn.lastgroup if turn.lastgroup != "said" else next(name for name in _SPEAKERS if turn[name])
        )
        roles.add(role)
        if role != "person" and _is_speech(turn["said"]):
            return True
    return "model" in roles and "person" in roles


def _is_speech(said: str) -> bool:
    reading = Reading(said, lexicon())
    return any(reading.spans(language, ["speech"]) for language in reading.languages)


def _is_disguised(folded: str) -> bool:
    """The commonest command of all without spaces, backwards, or with each letter moved by 13; or words spelled out."""
    if _SPELLED_OUT.search(folded):
        return True
    letters = _NOT_LETTERS.sub("", folded)
    return any(_COMPACT.search(form) for form in (letters, letters[::-1], letters.translate(_ROT13)))


def _has_role(content: object) -> bool:
    """Whether there is a message of a chat in it: an object with a role of a chat and a content."""
    match content:
        case dict():
            roles = {"system", "assistant", "developer", "tool", "user"}
            return (content.get("role") in roles and "content" in content) or any(
                map(_has_role, content.values())
            )
        case list():
            return any(map(_has_role, content))
    return False


def _strings(content: object) -> Iterator[str]:
    match content:
        case str():
            yield content
        case dict():
            for key, inner in content.items():
                yield key
                yield from _strings(inner)
        case list():
            for inner in content:
                yield from _strings(inner)
