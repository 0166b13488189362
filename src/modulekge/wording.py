"""Counts and durations as one says them: "1 triple", "2,000 triples", "0.35 s", "1 h 10 min"."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun; ``many`` where more than an s tells it from ``one``.

    >>> counted(1, "triple"), counted(2000, "entity", "entities")
    ('1 triple', '2,000 entities')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Return seconds in one unit or two, to about two digits.

    >>> duration(0.354), duration(47.2), duration(1800), duration(4230), duration(200_000)
    ('0.35 s', '47 s', '30 min', '1 h 10 min', '2 days 8 h')
    """
    if seconds < 9.5:
        return f"{seconds:.2g} s"
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 1440:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return counted(days, "day") + (f" {hours} h" if hours else "")
