"""Figures over seeds: the mean with its interval, and the difference of two means with its own."""

from collections.abc import Sequence
from statistics import fmean, stdev, variance

_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def spread_over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of two seeds or more, by Student's t."""
    half = _students_t(len(values)) * stdev(values) / len(values) ** 0.5
    mean = fmean(values)
    return max(0.0, mean - half), min(1.0, mean + half)


def difference_over_seeds(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    r"""Return the 95 % interval of $\bar x_1 - \bar x_2$, each over two seeds or more, by Welch's t.

    Degrees of freedom are rounded down, so that the interval is no narrower than it should be.
    """
    parts = [variance(values) / len(values) for values in (first, second)]
    apart, total = fmean(first) - fmean(second), sum(parts)
    if total == 0:
        return apart, apart
    squares = (part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True))
    half = _students_t(1 + int(total**2 / sum(squares))) * total**0.5
    return apart - half, apart + half


def _students_t(seeds: int) -> float:
    """Return Student's t for a two-sided 95 % interval; beyond the table its expansion about the normal's."""
    free = seeds - 1
    return _T.get(seeds) or 1.95996 + 2.37227 / free + 2.8225 / free**2 + 2.55585 / free**3
