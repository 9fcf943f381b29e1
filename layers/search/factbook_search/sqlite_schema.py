"""Tables of the SQLite index file. Each index has a number k and tables of its own: `docs_k`, `words_k`, `terms_k`, `vectors_k`.

`words_k` is an inverted index without content: which documents hold a term, or a mark of how often (`bm25.marks`), and
nothing of where. `terms_k` reads it, so no query language is involved. Terms and marks hold no space and no ASCII sign but
`_` and `#` (see `domain.retrieval.tokenizer`), so this tokenizer setting splits them at spaces alone.
"""

from factbook.domain.retrieval.documents import KEYWORD_FIELDS, NUMBER_FIELDS

REGISTRY = """
CREATE TABLE IF NOT EXISTS indexes(
  k INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, model TEXT, dimensions INTEGER,
  active INTEGER NOT NULL DEFAULT 0, format INTEGER NOT NULL DEFAULT 1)
"""
FORMAT_COLUMN = "ALTER TABLE indexes ADD COLUMN format INTEGER NOT NULL DEFAULT 1"
"""For a registry that is older than formats."""

WHOLE = """
(SELECT count(*) FROM sqlite_master WHERE name IN ('docs_' || k, 'words_' || k, 'terms_' || k, 'vectors_' || k))
  = CASE WHEN dimensions IS NULL THEN 3 ELSE 4 END
"""
"""Of a row of the registry: whether the tables of that index are there."""

COLUMNS = (
    "tenant",
    "id",
    "chunk",
    "version",
    "live",
    "chunks",
    "embedded",
    "length",
    *KEYWORD_FIELDS,
    *NUMBER_FIELDS,
)


def create_tables(k: int, dimensions: int | None) -> list[str]:
    keywords = "".join(f", {name} TEXT" for name in KEYWORD_FIELDS)
    numbers = "".join(f", {name} INTEGER" for name in NUMBER_FIELDS)
    statements = [
        f"""CREATE TABLE docs_{k}(
          rowid INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, chunk INTEGER NOT NULL,
          version INTEGER NOT NULL, live INTEGER NOT NULL, chunks INTEGER NOT NULL, embedded INTEGER NOT NULL,
          length INTEGER NOT NULL{keywords}{numbers}, UNIQUE(tenant, id, chunk))""",
        f"CREATE INDEX tenants_{k} ON docs_{k}(tenant, live)",
        f"""CREATE VIRTUAL TABLE words_{k} USING
          fts5(text, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_#'")""",
        f"CREATE VIRTUAL TABLE terms_{k} USING fts5vocab('words_{k}', 'instance')",
    ]
    if dimensions is not None:
        statements.append(
            f"CREATE VIRTUAL TABLE vectors_{k} USING"
            f" vec0(tenant TEXT PARTITION KEY, vector FLOAT[{dimensions}] distance_metric=cosine, chunk_size=256)"
        )
    return statements


def drop_tables(k: int) -> list[str]:
    return [f"DROP TABLE IF EXISTS {name}_{k}" for name in ("vectors", "terms", "words", "docs")]
