"""Values of JSON and TOML as what they should be: checked against types before anything uses them."""

import dataclasses
from collections.abc import Iterable, Mapping
from math import isinf
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
_MOST_BITS = 64  # of a whole number; a larger one may be no float
_PLAIN = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}


def typed(kind: type[T], value: Any) -> T:
    """Return a value as a ``kind``: a dataclass of numbers, text, words, and tuples and dicts of such.

    What does not fit is a ValueError that says where it stands: ``together.slope: expected a number``.
    """
    found: T = checked(kind, value, "")
    return found


def checked(kind: Any, value: Any, place: str) -> Any:
    """Return a value as what any such type says; ``place`` is what to call it."""
    origin, parts = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, place)
    if origin is UnionType:
        (other,) = (part for part in parts if part is not NoneType)
        return None if value is None else checked(other, value, place)
    if origin is Annotated:
        return checked(parts[0], value, place)
    if origin is Literal:
        if value not in parts:
            raise _unfit(place, f"one of {', '.join(parts)}")
        return value
    if origin is tuple:
        return _row(parts, value, place)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise _unfit(place, "an object")
        key_kind, part = parts
        if part is str:
            return dict(zip(value, _texts(value.values(), place), strict=True))
        return {
            _key(key_kind, key, place): checked(part, item, f"{place}.{key}") for key, item in value.items()
        }
    return _plain(kind, value, place)


def _record(kind: Any, value: Any, place: str) -> Any:
    types = get_type_hints(kind)
    if not isinstance(value, Mapping) or value.keys() != types.keys():
        raise _unfit(place, f"an object with the keys {', '.join(types)}")
    return kind(**{key: checked(types[key], item, f"{place}.{key}") for key, item in value.items()})


def _row(parts: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _unfit(place, "a list of numbers, such as [1.0, 0.5]" if parts[0] is float else "a list")
    if parts == (str, ...):
        return tuple(_texts(value, place))
    if parts[1:] == (Ellipsis,):
        parts = parts[:1] * len(value)
    if len(parts) != len(value):
        raise _unfit(place, f"a list of {len(parts)}")
    return tuple(
        checked(part, item, f"{place}[{i}]") for i, (part, item) in enumerate(zip(parts, value, strict=True))
    )


def _key(kind: Any, key: str, place: str) -> Any:
    if kind is str:
        return _plain(str, key, place)
    if not key.isdecimal() or len(key) > 18:
        raise _unfit(place, "whole numbers as keys")
    return int(key)


def _texts(values: Iterable[Any], place: str) -> Iterable[str]:
    """Check many texts at once: names are millions."""
    if not all(type(value) is str for value in values):
        raise _unfit(place, "nothing but text")
    _plain(str, "".join(values), place)
    return values


def _plain(kind: Any, value: Any, place: str) -> Any:
    """Check a single value; a whole number is a number too, and NaN stands for one that is not known."""
    wanted = (int, float) if kind is float else (kind,)
    if type(value) not in wanted:
        raise _unfit(place, _PLAIN[kind])
    if type(value) is int and value.bit_length() > _MOST_BITS:
        raise _unfit(place, f"{_PLAIN[kind]} of at most {_MOST_BITS} bits")
    if isinstance(value, float) and isinf(value):
        raise _unfit(place, "a finite number")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _unfit(place, "whole characters (a surrogate stands alone)") from None
    return float(value) if kind is float else value


def _unfit(place: str, expected: str) -> ValueError:
    return ValueError(f"{place.lstrip('.') or 'the whole'}: expected {expected}")
