"""The SearchIndex contract on SQLite, and what only a file has: other processes, damage, a deadline kept by the reader."""

from collections.abc import Iterator

import pytest

from factbook_search.sqlite_index import SqliteIndex

from .search_index import SPACE, SearchIndexContract


@pytest.fixture(scope="class")
def sqlite_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path_factory.mktemp("search") / "search.db")
    index.activate(index.create(SPACE).name)
    yield index
    index.close()


class TestSqliteIndex(SearchIndexContract):
    @pytest.fixture(autouse=True)
    def _index(self, sqlite_index: SqliteIndex) -> None:
        self.index = sqlite_index
