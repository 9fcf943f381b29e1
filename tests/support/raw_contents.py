"""Contents and bodies as they are sent: those that come back to the letter, and those that are refused."""

from typing import Any

DEEP = "[" * 31 + '{"a":1}' + "]" * 31
EXACT = [
    "1.0", "-0.0", "0", "-1", "9007199254740991", "9223372036854775807", "-9223372036854775808", "18446744073709551616",
    "0.30000000000000004", "1.7976931348623157e+308", "5e-324", '""', "null", "true", "false", "[]", "{}", "[null]", '{"a":null}',
    '[[],{},"",0]', '{"b":1,"a":2}', '{"":""}', '"\U0001f600\U00010348"', '"e\u0301 é"', '"\\u0000\\u001f"', '"\\"\\\\/"', DEEP,
    '"NaN"', '{"__proto__":1,"content":null,"$ref":"#"}', '[1,1.0,"1",true]', '"\u2028\u2029\ufeff\u202e"', '{"e\u0301":1,"é":2}',
]  # fmt: skip


def body(content: str) -> str:
    return '{"type":"note","scope":{},"content":' + content + "}"


def content_of(text: str) -> str:
    """The content as it stands in an answer, which ends with it."""
    return text[text.index('"content":') + len('"content":') : -1]


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


MALFORMED: dict[str, Any] = {
    "no JSON": "{",
    "two values": body("1") + body("2"),
    "an array": "[]",
    "a string": '"x"',
    "null": "null",
    "form data": "type=note&content=1",
    "nothing": "",
    "NaN": body("NaN"),
    "Infinity": body("[Infinity]"),
    "beyond a double": body("1e400"),
    "duplicate key in content": body('{"a":1,"a":2}'),
    "duplicate key in body": '{"type":"a","type":"b","content":1}',
    "duplicate key by escape": body('{"a":1,"\\u0061":2}'),
    "lone high surrogate": body('"\\ud800"'),
    "lone low surrogate": body('"\\udfff"'),
    "lone surrogate in a key": body('{"\\ud800":1}'),
    "33 levels": body(nested(33)),
    "100000 levels": body(nested(100_000)),
    "a number with leading zero": body("01"),
    "a byte order mark": "\ufeff" + body("1"),
    "a control character": body('"\x01"'),
}
