"""Search as you type over the names and labels of a vocabulary: exact, prefix, word prefix, then alike."""

import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from modulekge.data.vocabulary import Vocabulary

_LONGEST = 200  # characters of a text that are looked at
_ENOUGH = 50  # plain matches from which on no alike ones are looked for
_ALIKE = 0.4  # share of the trigrams of a query that a text must hold to be alike
_MOST_ALIKE = 100
_LAST = "\U0010ffff"  # sorts behind every text
_EXACT, _PREFIX, _WORD, _NEAR, _NONE = range(5)

Ids = NDArray[np.int64]


def plain(text: str) -> str:
    """Return a text without case, accents and repeated spaces, cut at 200 characters."""
    parts = unicodedata.normalize("NFKD", text[:_LONGEST].casefold())
    letters = "".join(c for c in parts if not unicodedata.combining(c))
    return " ".join(letters.replace("_", " ").split())[:_LONGEST]


@dataclass(frozen=True, eq=False)
class Search:
    """An index of a vocabulary, built once.

    Of a text every word start is kept in one sorted list, for prefixes, and its trigrams, for what is
    mistyped. Matches are ordered by kind, then by ``weights``: entities with many facts come first.

    >>> Search.of(dataset.entities, degrees).find("fran")  # doctest: +SKIP
    array([12, 5])
    """

    weights: Ids
    starts: list[str]  # of every word of every text to its end, sorted
    owners: Ids  # the id of each start
    whole: NDArray[np.bool_]  # the start is that of the text itself
    trigrams: NDArray[np.uint64]  # distinct codes, ascending
    places: Ids  # where the texts of each trigram begin in ``holders``
    holders: Ids  # texts
    text_owners: Ids  # the id of each text
    lengths: Ids  # trigrams of each text

    @classmethod
    def of(cls, vocabulary: Vocabulary, weights: Ids) -> "Search":
        """Index the names and the labels."""
        texts, owners = [], []
        for i, name in enumerate(vocabulary.names):
            for text in {plain(name), plain(vocabulary.label(i))}:
                texts.append(text)
                owners.append(i)
        starts = sorted(
            chain.from_iterable(_word_starts(text, i) for text, i in zip(texts, owners, strict=True))
        )
        codes, places, holders, lengths = _postings(texts)
        return cls(
            weights,
            [start for start, _, _ in starts],
            np.array([owner for _, owner, _ in starts], np.int64),
            np.array([whole for _, _, whole in starts], bool),
            codes,
            places,
            holders,
            np.array(owners, np.int64),
            lengths,
        )

    @cached_property
    def by_weight(self) -> Ids:
        """Every id, the greatest weight first."""
        return np.argsort(-self.weights, kind="stable")

    def find(self, query: str) -> Ids:
        """Return the ids that match a query, best first; of an empty one all, by weight."""
        wanted = plain(query)
        if not wanted:
            return self.by_weight
        kinds = np.full(len(self.weights), _NONE)
        first, last = bisect_left(self.starts, wanted), bisect_left(self.starts, wanted + _LAST)
        found, whole = self.owners[first:last], self.whole[first:last]
        kinds[found] = _WORD
        kinds[found[whole]] = _PREFIX
        exact = slice(first, bisect_right(self.starts, wanted))
        kinds[self.owners[exact][self.whole[exact]]] = _EXACT
        likeness = np.zeros(len(self.weights))
        if len(np.unique(found)) < _ENOUGH:
            near, values = self._alike(wanted)
            fresh = kinds[near] == _NONE
            kinds[near[fresh]] = _NEAR
            likeness[near[fresh]] = values[fresh]
        ids = np.flatnonzero(kinds < _NONE)
        return ids[np.lexsort((ids, -self.weights[ids], -likeness[ids], kinds[ids]))]

    def _alike(self, wanted: str) -> tuple[Ids, NDArray[np.float64]]:
        """Return ids by the share of trigrams they have in common with a query, of both and of the query."""
        asked = np.unique(_codes(_padded(wanted)))
        slots = np.searchsorted(self.trigrams, asked)
        slots = slots[slots < len(self.trigrams)]
        slots = slots[np.isin(self.trigrams[slots], asked)]
        lists = [self.holders[self.places[slot] : self.places[slot + 1]] for slot in slots.tolist()]
        if not lists:
            return np.zeros(0, np.int64), np.zeros(0)
        shared = np.bincount(np.concatenate(lists), minlength=len(self.lengths))
        texts = np.flatnonzero(shared >= max(1, _ALIKE * len(asked)))
        common = shared[texts]
        likeness = common / len(asked) + 2 * common / (len(asked) + self.lengths[texts])
        order = np.argsort(-likeness, kind="stable")[:_MOST_ALIKE]
        owners, first = np.unique(self.text_owners[texts[order]], return_index=True)
        return owners, likeness[order][first]


def _word_starts(text: str, owner: int) -> list[tuple[str, int, bool]]:
    """Return a text from each of its words to its end; a word follows what is no letter or digit."""
    ends = [0, *(i for i in range(1, len(text)) if text[i].isalnum() and not text[i - 1].isalnum())]
    return [(text[i:], owner, i == 0) for i in ends]


def _padded(text: str) -> str:
    return f"\0\0{text}\0"


def _codes(text: str) -> NDArray[np.uint64]:
    """Return every three characters in a row as one number: 21 bits hold any character."""
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    return letters[:-2] << np.uint64(42) | letters[1:-1] << np.uint64(21) | letters[2:]


def _postings(texts: list[str]) -> tuple[NDArray[np.uint64], Ids, Ids, Ids]:
    """Return the distinct trigrams, where the texts of each begin, the texts, and trigrams per text."""
    padded = [_padded(text) for text in texts]
    sizes = np.array([len(text) for text in padded], np.int64)
    codes = _codes("".join(padded)) if padded else np.zeros(0, np.uint64)
    owners = np.repeat(np.arange(len(texts)), sizes)[:-2]
    ends = sizes.cumsum()[owners] if len(owners) else owners
    inside = np.arange(len(owners)) + 2 < ends  # three characters of one text
    codes, owners = codes[inside], owners[inside]
    order = np.lexsort((owners, codes))
    codes, owners = codes[order], owners[order]
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
    codes, owners = codes[fresh], owners[fresh]
    distinct, first = np.unique(codes, return_index=True)
    places = np.append(first, len(codes)).astype(np.int64)
    return (
        distinct,
        places,
        owners.astype(np.int64),
        np.bincount(owners, minlength=len(texts)).astype(np.int64),
    )
