"""Answers: records as the API shows them."""

from factbook.domain.strict_json import Json


def page_json(data: list[Json], cursor: str | None) -> Json:
    page: Json = {"data": data, "hasMore": cursor is not None}
    return page if cursor is None else page | {"nextCursor": cursor}
