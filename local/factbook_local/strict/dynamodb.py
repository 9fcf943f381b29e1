"""What DynamoDB refuses before it does anything.

Not checked: the size of an item after an UpdateItem, and of items that a transaction only conditions on or deletes;
both need what is stored.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from factbook_local.limits import LIMITS
from factbook_local.strict.refusals import Refused, invalid, over
from factbook_local.strict.schemas import Check, Params, Schemas
from factbook_local.strict.sizes import item_size, significant_digits, value_size

_EXPRESSIONS = (
    "ConditionExpression",
    "SearchConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_OPERATOR = re.compile(
    r"<>|<=|>=|[=<>+-]|\b(?:AND|OR|NOT|BETWEEN|IN)\b"
    r"|\b(?:attribute_exists|attribute_not_exists|attribute_type|begins_with|contains|size|if_not_exists|list_append)\s*\(",
    re.IGNORECASE,
)
_IN = re.compile(r"\bIN\s*\(([^)]*)\)", re.IGNORECASE)
_DUPLICATES = "Provided list of item keys contains duplicates"


def _check_put(params: Params, schemas: Schemas) -> None:
    item = params["Item"]
    if over("item", item_size(item)):
        raise invalid("Item size has exceeded the maximum allowed size")
    _check_numbers(item.values())
    _check_key_values(params["TableName"], item, schemas)
    _check_expressions(params)


def _check_keyed(params: Params, schemas: Schemas) -> None:
    """Get, Update, Delete and ConditionCheck of one item."""
    _check_numbers(params["Key"].values())
    _check_key_values(params["TableName"], params["Key"], schemas)
    _check_expressions(params)


def _check_search(params: Params, schemas: Schemas) -> None:
    _check_expressions(params)
    index = params.get("IndexName")
    if index is None or not params.get("ConsistentRead"):
        return
    schema = schemas.of(params["TableName"])
    if schema is not None and index in schema.indexes and index not in schema.shared:
        raise invalid("Consistent reads are not supported on global secondary indexes")


def _check_vector_search(params: Params, schemas: Schemas) -> None:
    """A vector index with a partition key is searched one partition at a time."""
    _check_expressions(params)
    if over("neighbours", params["TopK"]):
        raise invalid(
            f"Provided TopK value '{params['TopK']}' is out of valid range. "
            f"The value must be between 1 and {LIMITS['neighbours'].most} inclusive"
        )
    schema = schemas.of(params["TableName"])
    partition = None if schema is None else schema.vectors.get(params["IndexName"])
    if partition is None:
        return
    condition = params.get("SearchConditionExpression", "")
    names = params.get("ExpressionAttributeNames") or {}
    meant = {partition, *(each for each, name in names.items() if name == partition)}
    if not any(re.search(rf"(?<![\w#:]){re.escape(token)}\s*=\s*:", condition) for token in meant):
        raise invalid(
            "SearchConditionExpression must have an equality condition on the HASH attribute of the SearchSchema"
        )


def _check_batch_get(params: Params, schemas: Schemas) -> None:
    asked = [(table, keys) for table, keys in params["RequestItems"].items()]
    if over("batch get", sum(len(each["Keys"]) for _, each in asked)):
        raise invalid("Too many items requested for the BatchGetItem call")
    for table, each in asked:
        _check_expressions(each)
        _check_apart((identity(key) for key in each["Keys"]), _DUPLICATES)
        for key in each["Keys"]:
            _check_keyed({"TableName": table, "Key": key}, schemas)


def _check_batch_write(params: Params, schemas: Schemas) -> None:
    writes = [(table, write) for table, each in params["RequestItems"].items() for write in each]
    if over("batch write", len(writes)):
        raise invalid("Too many items requested for the BatchWriteItem call")
    for table, write in writes:
        if "PutRequest" in write:
            _check_put({"TableName": table, "Item": write["PutRequest"]["Item"]}, schemas)
        else:
            _check_keyed({"TableName": table, "Key": write["DeleteRequest"]["Key"]}, schemas)
    _check_apart(_places(((t, *_target(w)) for t, w in writes), schemas), _DUPLICATES)


def _check_transaction(params: Params, schemas: Schemas) -> None:
    operations = [next(iter(each.items())) for each in params["TransactItems"]]
    if over("transaction", len(operations)):
        raise invalid(
            "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "
            f"Member must have length less than or equal to {LIMITS['transaction'].most}"
        )
    for kind, operation in operations:
        (_check_put if kind == "Put" else _check_keyed)(operation, schemas)
    named = ((each["TableName"], each.get("Item") or each["Key"], "Item" in each) for _, each in operations)
    _check_apart(
        _places(named, schemas), "Transaction request cannot include multiple operations on one item"
    )
    if over("transaction bytes", sum(item_size(each.get("Item", {})) for _, each in operations)):
        raise invalid("Transaction request exceeded the maximum size: the items are larger than 4 MB")


def _check_table_update(params: Params, schemas: Schemas) -> None:
    schemas.forget(params["TableName"])
    changes = [
        change
        for change in params.get("GlobalSecondaryIndexUpdates") or []
        if change.keys() & {"Create", "Delete"}
    ]
    if over("index changes", len(changes)):
        raise Refused(
            "LimitExceededException",
            "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
        )


def _check_expressions(params: Params) -> None:
    for name in _EXPRESSIONS:
        if name in params:
            _check_expression(name, params[name])
    substituted = sum(
        len(name.encode()) + len(value.encode())
        for name, value in (params.get("ExpressionAttributeNames") or {}).items()
    ) + sum(
        len(name.encode()) + value_size(value)
        for name, value in (params.get("ExpressionAttributeValues") or {}).items()
    )
    if over("substitutions", substituted):
        raise invalid("The substitution variables of the expressions are larger than 2 MB")
    _check_numbers((params.get("ExpressionAttributeValues") or {}).values())


def _check_expression(name: str, text: str) -> None:
    if over("expression", len(text.encode())):
        raise invalid(f"Invalid {name}: Expression size has exceeded the maximum allowed size")
    if over("operators", len(_OPERATOR.findall(text))):
        raise invalid(f"Invalid {name}: The expression contains too many operators")
    if any(over("operands", listed.count(",") + 1) for listed in _IN.findall(text)):
        raise invalid(f"Invalid {name}: Invalid operator usage: operator: IN, too many operands")


def _check_numbers(values: Iterable[Params]) -> None:
    for value in values:
        if "N" in value and over("number", significant_digits(value["N"])):
            raise invalid("Attempting to store more than 38 significant digits in a Number")


def _check_key_values(table: str, item: Params, schemas: Schemas) -> None:
    """Only what is empty or long asks which attributes are keys: the schema costs a call."""
    suspects = {name for name, value in item.items() if not 0 < _length(value) <= LIMITS["sort key"].most}
    schema = schemas.of(table) if suspects else None
    if schema is None:
        return
    for keys in (schema.table, *schema.indexes.values()):
        for limit, name in zip(("partition key", "sort key"), keys, strict=True):
            if name in suspects:
                _check_key_value(limit, name, item[name])


def _check_key_value(limit: str, name: str, value: Params) -> None:
    if _length(value) == 0:
        raise invalid(
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
            f"an empty string value. Key: {name}"
        )
    if over(limit, _length(value)):
        kind = "hashkey" if limit == "partition key" else "rangekey"
        raise invalid(
            f"One or more parameter values were invalid: Size of {kind} has exceeded the maximum size limit "
            f"of {LIMITS[limit].most} bytes"
        )


def _length(value: Params) -> int:
    """Of what may be a key and may be too long or empty; 1 for everything else."""
    ((kind, content),) = value.items()
    return len(content.encode()) if kind == "S" else len(content) if kind == "B" else 1


def identity(key: Params) -> tuple[Any, ...]:
    return tuple(sorted((name, *next(iter(value.items()))) for name, value in key.items()))


def _target(write: Params) -> tuple[Params, bool]:
    return (
        (write["PutRequest"]["Item"], True)
        if "PutRequest" in write
        else (write["DeleteRequest"]["Key"], False)
    )


def _places(named: Iterable[tuple[str, Params, bool]], schemas: Schemas) -> Iterator[tuple[Any, ...]]:
    """Which item each operation is on; a whole item is reduced to its keys."""
    for table, attributes, whole in named:
        schema = schemas.of(table) if whole else None
        names = schema.table if schema is not None else tuple(attributes)
        yield table, identity({name: value for name, value in attributes.items() if name in names})


def _check_apart(places: Iterable[tuple[Any, ...]], message: str) -> None:
    seen = list(places)
    if len(set(seen)) < len(seen):
        raise invalid(message)


CHECKS: dict[str, Check] = {
    "PutItem": _check_put,
    "GetItem": _check_keyed,
    "UpdateItem": _check_keyed,
    "DeleteItem": _check_keyed,
    "Query": _check_search,
    "Scan": _check_search,
    "SearchVectors": _check_vector_search,
    "BatchGetItem": _check_batch_get,
    "BatchWriteItem": _check_batch_write,
    "TransactWriteItems": _check_transaction,
    "TransactGetItems": _check_transaction,
    "UpdateTable": _check_table_update,
}
