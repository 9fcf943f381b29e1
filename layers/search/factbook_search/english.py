"""The tokenizer that both indexes use: `domain.retrieval.tokenizer` with English stems and stop words of libraries."""

from functools import lru_cache

from snowballstemmer import stemmer
from stopwords import get_stopwords

from factbook.domain.retrieval.tokenizer import Tokenizer

STEMS_KEPT = 65_536


def english_tokenizer() -> Tokenizer:
    stem = stemmer("english").stemWord
    return Tokenizer(lru_cache(maxsize=STEMS_KEPT)(stem), frozenset(get_stopwords("english")))
