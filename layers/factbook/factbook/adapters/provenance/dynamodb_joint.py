"""Changes of facts with their entries of the log, as transactions over both tables."""

from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, store_errors
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.ports.facts.joint import Change
from factbook.ports.facts.store import Head
from factbook.ports.log.entries import StoredEntry


class DynamoJoint:
    """JointStore over the two tables; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, facts: DynamoFacts, log: DynamoLog) -> None:
        self._client = client
        self._facts = facts
        self._log = log

    def put(self, entry: StoredEntry, change: Change) -> Head | StoredEntry | None:
        entries = self._log.writes([entry])
        try:
            with store_errors():
                self._client.transact_write_items(TransactItems=[*entries, *self._facts.writes(change)])
        except ConditionFailed as lost:
            if lost.place < len(entries):
                return self._log.winner(entry, lost)
            return self._facts.winner(change.after, lost)
        return None
