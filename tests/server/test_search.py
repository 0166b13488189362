import random

import numpy as np
import pytest

from modulekge.data.vocabulary import Vocabulary
from modulekge.server.search import Search, plain

NAMES = {
    "Q1": "France",
    "Q2": "French Guiana",
    "Q3": "San Francisco",
    "Q4": "Île-de-France",
    "Q5": "Germany",
    "Q6": "São Tomé and Príncipe",
    "Q7": "北京",
    "Q8": "new_york city",
    "Q9": "francium",
}


@pytest.fixture(scope="module")
def search():
    weights = np.array([5, 4, 90, 80, 3, 2, 1, 1, 70])
    return Search.of(Vocabulary("entity", tuple(NAMES), NAMES), weights)


def labels(search, query):
    return [list(NAMES.values())[i] for i in search.find(query).tolist()]


def test_exact_before_prefix_before_word_and_each_by_weight(search):
    assert labels(search, "france")[:2] == ["France", "Île-de-France"]
    assert labels(search, "franc")[:4] == ["francium", "France", "San Francisco", "Île-de-France"]
    assert labels(search, "FRAN")[:4] == ["francium", "France", "San Francisco", "Île-de-France"]


@pytest.mark.parametrize(
    ("query", "label"),
    [
        ("q5", "Germany"),
        ("sao tome", "São Tomé and Príncipe"),
        ("PRINCIPE", "São Tomé and Príncipe"),
        ("ile de france", "Île-de-France"),
        ("北", "北京"),
        ("new york", "New_york city"),
        ("york", "New_york city"),
        ("  germany  ", "Germany"),
        ("grmany", "Germany"),
        ("Germnay", "Germany"),
        ("fransisco", "San Francisco"),
        ("sna francisco", "San Francisco"),
    ],
)
def test_found_first_whatever_the_case_accents_and_slips(search, query, label):
    assert labels(search, query)[0].casefold() == label.casefold()


def test_an_empty_query_is_all_by_weight_and_nonsense_is_nothing(search):
    assert search.find("").tolist() == search.find(" \t").tolist() == [2, 3, 8, 0, 1, 4, 5, 6, 7]
    for nonsense in ("zzzzqqqq", "\0", "💥💥💥", "\ud800", "%", "x" * 5000):
        assert len(search.find(nonsense)) == 0


def test_each_id_once_though_name_and_label_match():
    search = Search.of(
        Vocabulary("entity", ("paris", "parisian"), {"paris": "Paris, Paris"}), np.array([1, 2])
    )
    assert search.find("paris").tolist() == [0, 1]


def naive(texts, weights, query):
    """Exact, prefix, word prefix by looking at every text."""
    found = []
    for i, forms in enumerate(texts):
        kinds = []
        for text in map(plain, forms):
            starts = [j for j in range(len(text)) if text[j].isalnum() and not (j and text[j - 1].isalnum())]
            kinds += [0] if text == query else [1] if text.startswith(query) else []
            kinds += [2] if any(text.startswith(query, j) for j in starts) else []
        if kinds:
            found.append((min(kinds), -weights[i], i))
    return [i for _, _, i in sorted(found)]


def test_plain_matches_are_those_of_looking_at_every_text():
    draw = random.Random(0)
    words = ["ab", "abc", "ba", "b-a", "ca b", "É", "e", "a_b", "'a", "ab.c"]
    names = tuple(dict.fromkeys(" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(300)))
    given = {name: draw.choice(names)[::-1] for name in names if draw.random() < 0.5}
    weights = np.array([draw.randrange(5) for _ in names])
    search = Search.of(Vocabulary("entity", names, given), weights)
    texts = [{name, given.get(name, name)} for name in names]
    for query in {plain(word[:n]) for word in (*words, *names) for n in range(1, 9)} - {""}:
        expected = naive(texts, weights, query)
        assert search.find(query).tolist()[: len(expected)] == expected, query


def test_slips_are_forgiven():
    draw = random.Random(0)
    names = tuple({"".join(draw.choices("abcdefghij", k=draw.randint(6, 14))) for _ in range(2000)})
    search = Search.of(Vocabulary("entity", names), np.zeros(len(names), np.int64))
    hits = 0
    for i in range(200):
        name = names[i]
        j = draw.randrange(1, len(name) - 2)
        start, end = name[:j], name[j + 1 :]
        slips = [start + end, start + "x" + name[j:], start + end[0] + name[j] + end[1:]]
        hits += i in search.find(draw.choice(slips)).tolist()[:10]
    assert hits >= 190
