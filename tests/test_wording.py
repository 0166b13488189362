"""Counts and durations as one says them."""

import pytest

from modulekge.wording import counted, duration


def test_one_is_singular_and_everything_else_is_not():
    assert [counted(n, "triple") for n in (0, 1, 2000)] == ["0 triples", "1 triple", "2,000 triples"]
    assert counted(2, "entity", "entities") == "2 entities"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "0.012 s"),
        (1.0, "1 s"),
        (9.46, "9.5 s"),
        (9.7, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (1.8e3, "30 min"),
        (3580.0, "1 h"),
        (4200.0, "1 h 10 min"),
        (86_399.0, "1 day"),
        (200_000.0, "2 days 8 h"),
        (864_000.0, "10 days"),
    ],
)
def test_durations_are_said_in_units_that_one_can_picture(seconds, text):
    assert duration(seconds) == text
