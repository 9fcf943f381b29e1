"""Marks of a conversation with a model, where a memory has none: tags, roles, turns, and commands in disguise.

All functions take a folded text (see `readings`). Every repeat is bounded, or repeats one character or a row of fixed length.
"""

import re
from collections.abc import Callable

_MARKUP = re.compile(
    r"<[|!/\s]{0,3}(?:system|assistant|instructions?|memor(?:y|ies)|prompt|tool[ -]?(?:calls?|results?|use)|function[ -]?calls?|thinking"
    r"|developer|im[ -]start|im[ -]end|start of turn|end of turn|eot|bos|eos|sys)\b[^<>\n]{0,200}>"
    r"|</\s?(?:user|human|important|admin|policy|rules?|context|secret|override|s|invoke|parameter)\s?>"
    r"|<!--|<\|[^|<>\n]{1,40}\|>|<<\s?sys|\[\s?/?\s?inst\s?\]|\[\s?/?\s?system\b[^\]\n]{0,40}\]|```\s?(?:system|instructions?|prompt)\b|\{\{[#/~ ]{0,3}(?:system|assistant)\b"
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
    r"(?:^|[\n.!?;。])[ \t>*#\[(\"'-]{0,6}(?:"
    + "|".join(f"(?P<{role}>{names})" for role, names in _SPEAKERS.items())
    + r")[\])*]{0,3}[ \t]{0,2}:(?P<said>[^\n]{0,300})"
)
CHAT_ROLES = frozenset({"system", "assistant", "developer", "tool", "user"})
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_COMPACT = re.compile(
    "(?:ignor(?:e|a|ez|iere|era|ieren)|disregard|forget|override|bypass|vergiss|oubliez?|olvida|esqueca|dimentica|negeer)"
    "(?:all|any|the|of|your|my|these|toutes|tous|les|todas|todos|las|os|as|tutte|le|alle|deine|je|vos|tes|tus){0,4}"
    "(?:previous|prior|above|earlier|preceding|system|safety|your|vorherigen|bisherigen|eerdere|vorige)?"
    "(?:instruction|prompt|guideline|directive|rules|anweisung|regeln|consigne|instruc|istruzioni|instructie)"
)
_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_SPELLED_OUT = re.compile(r"(?<!\w)[^\W\d_](?:[ .\-_*][^\W\d_]){11,}(?!\w)")


def has_model_markup(folded: str) -> bool:
    """Whether there is a tag, comment or link that is written for a model rather than for a person."""
    return bool(_MARKUP.search(folded))


def has_role_marker(folded: str, is_speech: Callable[[str], bool]) -> bool:
    """Whether roles of a chat are marked, as `{"role": "system"}`, as a heading, or as turns of a conversation.

    A single turn counts when a model or the system has it and `is_speech` says that it speaks: "System: Linux Mint" is a device.
    """
    if _ROLE_KEY.search(folded) or _ROLE_HEADING.search(folded):
        return True
    roles = set()
    for turn in _TURN.finditer(folded):
        role = next(name for name in _SPEAKERS if turn[name])
        roles.add(role)
        if role != "person" and is_speech(turn["said"]):
            return True
    return {"model", "person"} <= roles


def has_chat_message(content: object) -> bool:
    """Whether a JSON value has a message of a chat in it: an object with a role and a content."""
    match content:
        case dict():
            return (content.get("role") in CHAT_ROLES and "content" in content) or any(
                map(has_chat_message, content.values())
            )
        case list():
            return any(map(has_chat_message, content))
    return False


def is_disguised(folded: str) -> bool:
    """Whether words are spelled out, or the commonest command of all stands there without spaces, backwards, or with each
    letter moved by 13."""
    if _SPELLED_OUT.search(folded):
        return True
    letters = _NOT_LETTERS.sub("", folded)
    return any(_COMPACT.search(form) for form in (letters, letters[::-1], letters.translate(_ROT13)))
