"""Names in a query: they say little and weigh much."""

from collections.abc import Set

from factbook.domain.retrieval.tokenizer import Tokenizer


def query_meanings(query: str) -> tuple[str, ...]:
    """What to embed of a query: the query, and the query without its names when it has any.

    Where every message has a speaker, and every fact of a project is about the same few people, a name narrows a search
    little. But an embedding model gives a name much weight. The second text takes half of that weight away. Capitalised
    words after the first are taken to be names.
    """
    words = query.split()
    plain = " ".join(
        [*words[:1], *(word for word in words[1:] if not (word[:1].isupper() and word[1:2].islower()))]
    )
    return (query, plain) if plain != " ".join(words) else (query,)


def names(terms: Set[str], speaker: str, tokenizer: Tokenizer) -> bool:
    """Whether the terms of a query name a speaker: all of at least one word of the name are among them."""
    words = (set(tokenizer.query(word)) for word in speaker.split())
    return any(word and word <= terms for word in words)
