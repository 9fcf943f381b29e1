"""The Copies and Originals contracts on moto and on ministack, and what only an injected fault shows."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.emulators import Aws

from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.adapters.portability import dynamodb_copies
from factbook.adapters.portability.dynamodb_copies import DynamoCopies, DynamoOriginals
from factbook.domain.errors import Throttled

from .copies import CopiesContract, Records


class OnDynamo(Records):
    def connect(self, aws: Aws, client: Any = None) -> None:
        client, names = client or aws.client("dynamodb"), aws.settings
        self.copies = DynamoCopies(client, names.facts_table, names.log_table, names.access_table)
        self.originals = DynamoOriginals(client, names.log_table, names.access_table)
        self.facts = DynamoFacts(client, names.facts_table)
        self.log = DynamoLog(client, names.log_table)


class TestDynamo(OnDynamo, CopiesContract):
    @pytest.fixture(autouse=True)
    def _stores(self, emulator: Aws) -> None:
        self.connect(emulator)


class Between:
    """A client whose transactions meet something: `events` are called before one after the other."""

    def __init__(self, client: Any, *events: Any) -> None:
        self._client = client
        self._events = list(events)
        self.transactions: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def transact_write_items(self, **what: Any) -> Any:
        self.transactions.append(len(what["TransactItems"]))
        if self._events:
            self._events.pop(0)()
        return self._client.transact_write_items(**what)


def refused(code: str, *reasons: str) -> Any:
    def refuse() -> None:
        said = [{"Code": reason} for reason in reasons]
        error = {"Error": {"Code": code, "Message": "no"}, "CancellationReasons": said}
        raise ClientError(error, "TransactWriteItems")

    return refuse


class TestFaults(OnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, moto: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dynamodb_copies, "PAUSE_SECONDS", 0.0)
        self.aws = moto
        self.connect(moto)

    def over(self, *events: Any) -> Between:
        client = Between(self.aws.client("dynamodb"), *events)
        self.connect(self.aws, client)
        return client

    def test_one_that_came_meanwhile_is_told_and_those_beside_it_are_written(self) -> None:
        heads = [self.head(number) for number in range(5)]
        other = self.head(2, '"mine"')
        client = self.over(lambda: self.facts.create(other))
        assert self.copies.put(heads) == ["written", "written", "other", "written", "written"]
        assert client.transactions == [5, 4]
        assert self.facts.head(self.tenant, "fact-2") == other

    def test_a_transaction_whose_answer_was_lost_has_put_what_is_there(self) -> None:
        heads = [self.head(number) for number in range(3)]
        aside = DynamoCopies(
            self.aws.client("dynamodb"), self.aws.settings.facts_table, self.aws.settings.log_table, "none"
        )
        self.over(lambda: aside.put(heads))
        assert self.copies.put(heads) == ["present"] * 3

    def test_another_transaction_in_the_way_is_waited_for(self) -> None:
        conflict = refused("TransactionCanceledException", "TransactionConflict", "None")
        client = self.over(conflict, conflict)
        assert self.copies.put([self.head(), self.head(1)]) == ["written", "written"]
        assert len(client.transactions) == 3

    def test_one_that_is_always_in_the_way_is_throttled(self) -> None:
        self.over(*[refused("TransactionCanceledException", "TransactionConflict")] * 20)
        with pytest.raises(Throttled):
            self.copies.put([self.head()])

    def test_keys_that_the_store_holds_back_are_asked_for_again(self) -> None:
        heads = [self.head(number) for number in range(4)]
        self.copies.put(heads)
        client = self.aws.client("dynamodb")

        class Holding:
            asked = 0

            def __getattr__(self, name: str) -> Any:
                return getattr(client, name)

            def batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803 - as the SDK names it
                ((table, request),) = RequestItems.items()
                type(self).asked += 1
                answer = client.batch_get_item(RequestItems={table: request | {"Keys": request["Keys"][:1]}})
                left = request["Keys"][1:]
                return answer | {"UnprocessedKeys": {table: request | {"Keys": left}} if left else {}}

        self.connect(self.aws, Holding())
        assert self.copies.put(heads) == ["present"] * 4
        assert Holding.asked == 4
