from dataclasses import dataclass
from math import isnan, nan

import pytest

from modulekge.json_io import typed


@dataclass(frozen=True)
class Point:
    x: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    points: dict[int, Point]
    size: tuple[int, float]
    labels: dict[str, str]
    best: Point | None


GOOD = {
    "points": {"3": {"x": 1, "names": ["a", "b"]}},
    "size": [4, 0.5],
    "labels": {"a": "A"},
    "best": None,
}


def test_json_becomes_what_its_types_say():
    found = typed(Picture, GOOD)
    assert found == Picture({3: Point(1.0, ("a", "b"))}, (4, 0.5), {"a": "A"}, None)
    assert isinstance(found.points[3].x, float)
    assert isnan(typed(Point, {"x": nan, "names": []}).x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": []}, "points: expected an object"),
        ({"points": {"a": {}}}, "points: expected whole numbers as keys"),
        ({"points": {"3": {"x": "1", "names": []}}}, r"points\.3\.x: expected a number"),
        ({"points": {"3": {"x": True, "names": []}}}, r"points\.3\.x: expected a number"),
        ({"points": {"3": {"x": 1e999, "names": []}}}, r"points\.3\.x: expected a finite number"),
        ({"points": {"3": {"x": 10**400, "names": []}}}, r"points\.3\.x: expected a number"),
        ({"points": {"3": {"x": 1.0, "names": ["a", 1]}}}, r"points\.3\.names: expected nothing but text"),
        ({"points": {"3": {"x": 1.0, "names": ["\ud800"]}}}, r"points\.3\.names: expected whole characters"),
        ({"points": {"3": {"x": 1.0}}}, r"points\.3: expected an object with the keys x, names"),
        ({"size": [4]}, "size: expected a list of 2"),
        ({"size": [4.0, 1.0]}, r"size\[0\]: expected a whole number"),
        ({"labels": {"a": None}}, "labels: expected nothing but text"),
        ({"best": 3}, "best: expected an object"),
        ({"more": 3}, "the whole: expected an object with the keys"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(change, message):
    with pytest.raises(ValueError, match=message):
        typed(Picture, {**GOOD, **change})
