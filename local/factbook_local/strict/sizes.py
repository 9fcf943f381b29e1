"""Bytes of items as DynamoDB counts them.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

import math
from typing import Any

_CONTAINER, _ELEMENT = 3, 1


def item_size(item: dict[str, Any]) -> int:
    """Names and values of an item's attributes, given as DynamoDB's attribute values."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: dict[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            return _number_size(content)
        case "SS":
            return sum(len(each.encode()) for each in content)
        case "BS":
            return sum(len(each) for each in content)
        case "NS":
            return sum(_number_size(each) for each in content)
        case "L":
            return _CONTAINER + sum(_ELEMENT + value_size(each) for each in content)
        case "M":
            return _CONTAINER + sum(_ELEMENT for _ in content) + item_size(content)
    return 1  # BOOL and NULL


def significant_digits(number: str) -> int:
    digits = number.lower().partition("e")[0].lstrip("+-").replace(".", "")
    return len(digits.strip("0")) or 1


def _number_size(number: str) -> int:
    """One byte per two digits and one more; one for a minus sign."""
    return math.ceil(significant_digits(number) / 2) + 1 + number.startswith("-")
