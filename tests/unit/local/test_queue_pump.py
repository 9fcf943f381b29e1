"""One event of a function holds as many messages as Lambda takes together."""

import json

from factbook_local.limits import LIMITS, MIB
from factbook_local.pumps.queues import _events


def message(number: int, size: int) -> dict[str, str]:
    return {"MessageId": str(number), "Body": "x" * size}


def test_messages_that_are_too_large_together_come_in_order_as_several_events() -> None:
    messages = [message(number, MIB) for number in range(10)]
    events = _events(messages)

    assert [each for event in events for each in event] == messages
    assert [len(event) for event in events] == [5, 5]
    assert all(len(json.dumps(event)) <= LIMITS["invocation"].most for event in events)


def test_what_fits_is_one_event() -> None:
    messages = [message(number, 1_000) for number in range(10)]

    assert _events(messages) == [messages]
    assert _events([]) == []
