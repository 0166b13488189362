"""Values that show themselves in a few lines or as HTML, and hand their rows to Arrow and pandas."""

import dataclasses
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    SupportsIndex,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from modulekge.errors import ModulekgeError
from modulekge.installation import pip
from modulekge.wording import counted

Row = TypeVar("Row")
Several = TypeVar("Several", bound="Rows[Any]")
Columns = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]  # their types by name, and the rows
_LONGEST = 700  # characters of a repr
_WIDEST = 24  # of a cell in it
_MOST = 50  # rows of HTML


class Shown(ABC):
    """What is shown as its name and some facts about it, instead of all that it holds."""

    @abstractmethod
    def _about(self) -> Mapping[str, object]:
        """Return the facts, by what to call them."""

    def _title(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        facts = self._about()
        width = max(map(len, facts), default=0)
        return "\n".join([self._title(), *(f"  {name:{width}}  {_plain(facts[name])}" for name in facts)])

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(_plain(value))}</td></tr>"
            for name, value in self._about().items()
        )
        return f"<div><b>{escape(self._title())}</b>{f'<table>{facts}</table>' if facts else ''}</div>"


class Table(Shown):
    """What is shown with its first rows, and can be had as a table."""

    @abstractmethod
    def _columns(self) -> Columns:
        """Return the types of the columns by name, and the rows."""

    def to_arrow(self) -> Any:
        """Return the rows as a table of pyarrow; numbers that there are not are null."""
        import pyarrow as pa

        types, rows = self._columns()
        arrays = {
            name: pa.array([row[name] for row in rows], _arrow_type(kind)) for name, kind in types.items()
        }
        return pa.table(arrays)

    def to_pandas(self) -> Any:
        """Return the rows as a data frame, for which pandas has to be installed."""
        try:
            importlib.import_module("pandas")
        except ImportError:
            raise ModulekgeError(
                f"to_pandas needs pandas: {pip()} install pandas; or use to_arrow()"
            ) from None
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        types, rows = self._columns()
        text, names = super().__repr__(), list(types)
        few = [[_cell(row[name], _WIDEST) for name in names] for row in rows[: _LONGEST // 10]]
        widths = [max(map(len, column)) for column in zip(names, *few, strict=True)]
        for shown, cells in enumerate([names, *few] if rows else []):
            line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
            if shown > 1 and len(text) + len(line) > _LONGEST:
                return f"{text}\n... {len(rows) - shown + 1:,} more"
            text += f"\n{line}"
        return text + (f"\n... {len(rows) - len(few):,} more" if len(rows) > len(few) else "")

    def _repr_html_(self) -> str:
        types, rows = self._columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in types)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(row[name]))}</td>" for name in types) + "</tr>"
            for row in rows[:_MOST]
        )
        more = f"<div>... {len(rows) - _MOST:,} more</div>" if len(rows) > _MOST else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        return super()._repr_html_() + (table if rows else "")


class Rows(Table, list[Row]):
    """A list of values of one kind that is a table too."""

    kind: ClassVar[type]  # a dataclass
    what: ClassVar[tuple[str, str]]  # to call one of them, and several

    @overload
    def __getitem__(self, place: SupportsIndex) -> Row: ...

    @overload
    def __getitem__(self: Several, place: slice) -> Several: ...

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return type(self)(found) if isinstance(place, slice) else found

    def _about(self) -> Mapping[str, object]:
        return {}

    def _title(self) -> str:
        return counted(len(self), *self.what)

    def _columns(self) -> Columns:
        return columns_of(self.kind, self)


def columns_of(kind: Any, values: Sequence[Any]) -> Columns:
    """Return the fields of dataclasses as columns; those of one within another are called after both."""
    types: dict[str, Any] = {}
    for name, hint in _fields(kind).items():
        types |= (
            {f"{name}_{inner}": hint for inner, hint in _fields(hint).items()}
            if dataclasses.is_dataclass(hint)
            else {name: hint}
        )
    return types, [_flat(kind, value) for value in values]


def _flat(kind: Any, value: Any) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, hint in _fields(kind).items():
        part = value[name] if isinstance(value, Mapping) else getattr(value, name)  # as asdict has it
        row |= (
            {f"{name}_{inner}": getattr(part, inner) for inner in _fields(hint)}
            if dataclasses.is_dataclass(hint)
            else {name: part}
        )
    return row


def _fields(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _arrow_type(kind: Any) -> Any:
    """Return Arrow's type of what a field holds."""
    import pyarrow as pa

    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _arrow_type(next(part for part in parts if part is not NoneType))
    if origin in (tuple, list):
        return pa.list_(_arrow_type(parts[0]))
    plain = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    return plain[type(parts[0]) if origin is Literal else kind]


def _cell(value: Any, width: int | None = None) -> str:
    """Return a value in a table, cut at a width; what there is not is empty."""
    if value is None:
        return ""
    if isinstance(value, tuple | list):
        value = ", ".join(map(_plain, value))
    text = _plain(value)
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def _plain(value: object) -> str:
    """Return a number to four digits, or text without what a terminal would obey."""
    text = f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    return "".join(char if char.isprintable() else "�" for char in text)
