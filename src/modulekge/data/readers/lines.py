"""Text line by line in bounded memory; what is wrong with a line stands in its place."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from modulekge.errors import DataError

LONGEST = 8 << 20  # bytes of a line; the fast reader takes as many at a time, and so no line of twice as many
_GZIP = b"\x1f\x8b"


def starts_with(path: Path, mark: bytes) -> bool:
    """Say whether the first bytes of a file are these."""
    try:
        with path.open("rb") as file:
            return file.read(len(mark)) == mark
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> DataError:
    """Say why a file of data cannot be read."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file; check the path")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path}: a folder; name a file in it")
    return DataError(f"{path}: cannot be read ({error.strerror or error}); mend the file or its permissions")


def packed(path: Path) -> bool:
    """Say whether a file is gzip, whatever its ending; an ending .gz on anything else is refused."""
    found = starts_with(path, _GZIP)
    if path.suffix.lower() == ".gz" and not found:
        raise DataError(f"{path}: ends in .gz and is not what gzip writes; rename the file or pack it")
    return found


def open_bytes(path: Path) -> BufferedIOBase:
    """Open a file to read its bytes, unpacked."""
    return gzip.GzipFile(path) if packed(path) else path.open("rb")


def numbered_lines(path: Path) -> Iterator[tuple[int, str | DataError]]:
    """Yield the number of each line with its text, or with what is wrong with it."""
    number = 0
    try:
        with open_bytes(path) as file:
            while line := file.readline(LONGEST):
                number += 1
                if len(line) == LONGEST and not line.endswith(b"\n"):
                    while (rest := file.readline(LONGEST)) and not rest.endswith(b"\n"):
                        pass
                    found = f"the line is longer than {LONGEST >> 20} MiB; is it one line?"
                    yield number, DataError(f"{path}:{number}: {found}")
                else:
                    yield number, _text(path, number, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        place, found = f"{path}:{number + 1}", "the packed data break off in this line"
        yield (
            number + 1,
            DataError(f"{place}: {found} ({error}); the file is damaged: fetch or pack it again"),
        )
    except OSError as error:
        yield number, unreadable(path, error)


def _text(path: Path, number: int, line: bytes) -> str | DataError:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        return DataError(f"{path}:{number}: not UTF-8 text; save the file as UTF-8")
    text = text.removesuffix("\n").removesuffix("\r")
    if "\0" in text:
        return DataError(f"{path}:{number}: holds a NUL byte; remove it")
    if "\r" in text:
        return DataError(f"{path}:{number}: holds a carriage return; end lines with LF or CRLF")
    return text


def numbered_rows(path: Path, separator: str, quoted: bool) -> Iterator[tuple[int, list[str] | DataError]]:
    """Yield the fields of each row that is not blank, with the number of the line on which it starts."""
    if quoted:
        yield from _quoted_rows(path, separator)
        return
    for number, text in numbered_lines(path):
        if isinstance(text, DataError):
            yield number, text
        elif text:
            yield number, text.split(separator)


def _quoted_rows(path: Path, separator: str) -> Iterator[tuple[int, list[str] | DataError]]:
    source = _Source(path)
    reader = csv.reader(source, delimiter=separator, strict=True)
    while True:
        start = source.number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except DataError as error:
            yield source.number, error
        except csv.Error as error:
            advice = "close each quote, and write a quote in a quoted field twice"
            yield start, DataError(f"{path}:{start}: {error}; {advice}")
        else:
            if row:
                yield start, row


class _Source:
    """Lines for the csv module: a bad one is raised, and the one after it can still be asked for."""

    def __init__(self, path: Path) -> None:
        self.number = 0
        self._lines = numbered_lines(path)

    def __iter__(self) -> "_Source":
        return self

    def __next__(self) -> str:
        self.number, text = next(self._lines)
        if isinstance(text, DataError):
            raise text
        return text + "\n"
