"""Tokens, the deployment's cursor key and the keys of its issuer, in the access table."""

import secrets
from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, part
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.strict_json import Json, dump_json, parse_json
from factbook.ports.access.issuers import KeySet
from factbook.ports.access.stores import Token

_NEW = {
    "ConditionExpression": "attribute_not_exists(pk)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


MOST_KEY_SET_CHARACTERS = 100_000
"""An item has 400 KB. What is longer is fetched by every process anew."""


class DynamoAccess:
    """TokenStore, SecretStore and KnownKeys over one table; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def token(self, token_id: str) -> Token | None:
        item = self._get({"pk": key("token", token_id), "sk": "token"})
        return _read_token(item) if item else None

    def create_token(self, token: Token) -> bool:
        try:
            self._put(_token_item(token), **_NEW)
        except ConditionFailed as taken:
            # The SDK retries a lost reply: what is there may be this very token.
            return bool(taken.item.get("h") == token.secret_sha256)
        return True

    def replace_token(self, token: Token) -> None:
        self._put(_token_item(token))

    def tokens(self, tenant: str, after: str, limit: int) -> tuple[list[Token], bool]:
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName="tenant",
                KeyConditionExpression="tn = :tenant AND ts > :after",
                ExpressionAttributeValues=to_item({":tenant": part(tenant), ":after": after or " "}),
                Limit=limit,
            )
        return [_read_token(from_item(item)) for item in page["Items"]], "LastEvaluatedKey" in page

    def cursor_key(self) -> bytes:
        where: Item = {"pk": "system", "sk": "cursor-key"}
        item = self._get(where)
        if item is None:
            item = {**where, "v": secrets.token_bytes(32)}
            try:
                self._put(item, **_NEW)
            except ConditionFailed as first:
                item = first.item
        return bytes(item["v"])

    def key_set(self, issuer: str) -> KeySet | None:
        item = self._get(_issuer_key(issuer))
        if item is None:
            return None
        kept = parse_json(item["v"])
        return KeySet(kept["keys"], kept["fetchedAt"])

    def keep_key_set(self, issuer: str, found: KeySet) -> None:
        kept = {"keys": [dict(each) for each in found.keys], "fetchedAt": found.fetched_at}
        text = dump_json(kept)
        if len(text) <= MOST_KEY_SET_CHARACTERS:
            self._put({**_issuer_key(issuer), "v": text})

    def _get(self, where: Item) -> Item | None:
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=to_item(where), ConsistentRead=True)
        return from_item(answer["Item"]) if "Item" in answer else None

    def _put(self, item: Item, **condition: str) -> None:
        with store_errors():
            self._client.put_item(TableName=self._table, Item=to_item(item), **condition)


def _issuer_key(issuer: str) -> Item:
    return {"pk": "issuer", "sk": part(issuer)}


def _token_item(token: Token) -> Item:
    principal = token.principal
    return {
        "pk": key("token", token.id),
        "sk": "token",
        "tn": part(principal.tenant),
        "ts": f"{token.created_at}|{token.id}",
        "h": token.secret_sha256,
        "d": dump_json(
            {
                "id": token.id,
                "tenant": principal.tenant,
                "actor": principal.actor.to_json(),
                "admin": principal.admin,
                "projects": {
                    "read": sorted(principal.reads_projects),
                    "write": sorted(principal.writes_projects),
                },
                "orgs": {
                    "read": sorted(principal.reads_orgs),
                    "admin": sorted(principal.administers_orgs),
                },
                "agentId": principal.agent_id,
                "createdAt": token.created_at,
                "createdBy": token.created_by,
                "expiresAt": token.expires_at,
                "revokedAt": token.revoked_at,
            }
        ),
    }


def _read_token(item: Item) -> Token:
    kept: Json = parse_json(item["d"])
    principal = Principal(
        tenant=kept["tenant"],
        actor=Actor.model_validate(kept["actor"]),
        admin=kept["admin"],
        reads_projects=frozenset(kept["projects"]["read"]),
        writes_projects=frozenset(kept["projects"]["write"]),
        reads_orgs=frozenset(kept["orgs"]["read"]),
        administers_orgs=frozenset(kept["orgs"]["admin"]),
        agent_id=kept["agentId"],
    )
    return Token(
        id=kept["id"],
        secret_sha256=item["h"],
        principal=principal,
        created_at=kept["createdAt"],
        created_by=kept["createdBy"],
        expires_at=kept["expiresAt"],
        revoked_at=kept["revokedAt"],
    )
