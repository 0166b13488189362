"""What a server did, counted, in the text format that Prometheus reads."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


@dataclass(eq=False)
class Histogram:
    """How many values were at most each bound, and their sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> Iterable[str]:
        """Yield the lines of a histogram; counts add up from bound to bound."""
        below = 0
        for bound, count in zip((*(f"{bound:g}" for bound in self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{{labels}{"," if labels else ""}le="{bound}"}} {below}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self.total:.6f}"
        yield f"{name}_count{braces} {below}"


@dataclass(eq=False)
class Metrics:
    """Requests by route and status, their seconds, and the batches in which questions were answered."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: dict[str, Histogram] = field(default_factory=dict)
    batches: Histogram = field(default_factory=lambda: Histogram(SIZES))
    batch_seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered, or whose client had gone: status 499."""
        with self._lock:
            self.requests[route, status] += 1
            self.seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def add_batch(self, size: int, seconds: float) -> None:
        """Count a batch of questions."""
        with self._lock:
            self.batches.add(float(size))
            self.batch_seconds.add(seconds)

    def text(self, queued: Mapping[str, int]) -> str:
        """Return all of it, with how many questions wait for each run."""
        with self._lock:
            return "\n".join([*self._lines(queued), ""])

    def _lines(self, queued: Mapping[str, int]) -> Iterable[str]:
        yield "# TYPE modulekge_requests_total counter"
        for (route, status), count in sorted(self.requests.items()):
            yield f'modulekge_requests_total{{route="{_quoted(route)}",status="{status}"}} {count}'
        yield "# TYPE modulekge_request_seconds histogram"
        for route, histogram in sorted(self.seconds.items()):
            yield from histogram.lines("modulekge_request_seconds", f'route="{_quoted(route)}"')
        yield "# TYPE modulekge_batch_questions histogram"
        yield from self.batches.lines("modulekge_batch_questions")
        yield "# TYPE modulekge_batch_seconds histogram"
        yield from self.batch_seconds.lines("modulekge_batch_seconds")
        yield "# TYPE modulekge_requests_under_way gauge"
        yield f"modulekge_requests_under_way {self.under_way}"
        yield "# TYPE modulekge_questions_waiting gauge"
        for run, count in queued.items():
            yield f'modulekge_questions_waiting{{run="{_quoted(run)}"}} {count}'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
