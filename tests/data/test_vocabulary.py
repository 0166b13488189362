from difflib import get_close_matches

import pytest

from modulekge import suggest
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import UnknownNameError

WORDS = Vocabulary("entity", ("Q1", "Q2", "Q3", "paris"), {"Q1": "Paris", "Q2": "Rome", "Q3": "Rome"})


def test_a_name_goes_before_a_label_and_case_is_forgiven():
    assert WORDS.find("paris") == 3
    assert WORDS.find("q2") == 1
    assert [WORDS.label(i) for i in range(4)] == ["Paris", "Rome", "Rome", "paris"]


def test_an_ambiguous_label_lists_its_names():
    with pytest.raises(UnknownNameError, match=r"label of 2 entities.*'Q2', 'Q3'"):
        WORDS.find("rome")


def test_the_exact_case_of_a_label_decides():
    words = Vocabulary("entity", ("a", "b"), {"a": "Paris", "b": "PARIS"})
    assert (words.find("Paris"), words.find("PARIS")) == (0, 1)


def test_the_beginning_of_a_name_is_answered_with_what_goes_on_from_it():
    dogs = Vocabulary("entity", ("hotdog.n.01", "dog_days.n.01", "dog.n.01", "dot"))
    with pytest.raises(UnknownNameError, match=r"did you mean 'dog\.n\.01' or 'dog_days\.n\.01' or"):
        dogs.find("Dog")


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown entity 'Rom'; did you mean 'Rome'"):
        WORDS.find("Rom")
    cities = Vocabulary("entity", ("Madrid", "Spain", "Paris"))
    with pytest.raises(UnknownNameError, match="did you mean 'Paris'"):
        cities.find("pari")
    with pytest.raises(UnknownNameError, match="the graph has 4 entities, such as 'Paris'"):
        WORDS.find("xyzzy")


def test_a_label_that_others_have_is_told_with_the_name():
    films = Vocabulary("entity", ("f1", "f2", "f3"), {"f1": "Heat", "f2": "Heat", "f3": "Alien"})
    assert [films.called(i) for i in range(3)] == ["Heat (f1)", "Heat (f2)", "Alien"]


def test_two_letters_that_changed_places_are_seen_among_many_names():
    names = Vocabulary("entity", ("vim", *(f"v{i}mi" for i in range(200)), *(f"vm-{i}" for i in range(200))))
    with pytest.raises(UnknownNameError, match="did you mean 'vim'"):
        names.find("vmi")


def test_of_many_names_few_are_compared_with_an_unknown_one(monkeypatch):
    compared = []

    def close_matches(word, names, *rest):
        compared.extend(names)
        return get_close_matches(word, names, *rest)

    monkeypatch.setattr(suggest, "get_close_matches", close_matches)
    numbers = [f"http://www.example.org/resource/n{i}" for i in range(20_000)]
    many = Vocabulary("entity", (*numbers, "http://www.example.org/resource/Zürich_\0\ud800"))
    with pytest.raises(UnknownNameError, match=r"did you mean 'http://\S+/n12345' or"):
        many.find("http://www.example.org/resource/m12345")
    with pytest.raises(UnknownNameError, match=r"did you mean 'http://\S+/Zürich"):
        many.find("http://www.example.org/resource/Züirch")
    assert len(compared) <= 128
