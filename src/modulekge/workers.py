"""The processes of a job as torchrun starts them: what each of them holds, what they work out together."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from modulekge.errors import ConfigError, LostError, ModulekgeError

_PLACE = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # by which torchrun tells a process its place
_TIMEOUT = "MODULEKGE_TIMEOUT"  # seconds after which a process that does not answer is given up
_TURN = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # how often torchrun has begun anew


@dataclass(frozen=True, eq=False)
class Workers:
    """Processes that hold the rows of tables between them; one alone holds them all.

    ``shards`` processes in a row make a copy: together they hold a whole table, and they are asked the
    same questions. Where there are several copies, each is asked its part of a batch.
    """

    rank: int = 0
    size: int = 1
    shards: int = 1
    copy: dist.ProcessGroup | None = field(default=None, repr=False)  # those of this process's copy
    replicas: dist.ProcessGroup | None = field(default=None, repr=False)  # those that hold the same rows

    @property
    def copies(self) -> int:
        """How many whole tables there are."""
        return self.size // self.shards

    @property
    def is_main(self) -> bool:
        """Whether it is this process that speaks and writes for all."""
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """Return which of the rows of a table are held here."""
        return _part(count, self.rank % self.shards, self.shards)

    def questions(self, count: int) -> slice:
        """Return which of the questions of a batch are asked here."""
        return _part(count, self.rank // self.shards, self.copies)

    def sum(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Return the sums of tensors over the shards, all of them in one message."""
        if self.shards == 1:
            return parts
        flat = torch.cat([part.reshape(-1) for part in parts])
        with _answering():
            dist.all_reduce(flat, group=self.copy)
        pieces = flat.split([part.numel() for part in parts])
        return tuple(piece.view_as(part) for piece, part in zip(pieces, parts, strict=True))

    def log_sum_exp(self, x: Tensor) -> Tensor:
        r"""$\log\sum_i e^{x_i}$ over the shards."""
        if self.shards == 1:
            return x
        found = [torch.empty_like(x) for _ in range(self.shards)]
        with _answering():
            dist.all_gather(found, x.contiguous(), group=self.copy)
        return torch.stack(found).logsumexp(0)

    def sum_copies_(self, tensors: Sequence[Tensor]) -> None:
        """Make tensors their sums over the copies."""
        if self.copies == 1:
            return
        with _answering():
            for tensor in tensors:
                dist.all_reduce(tensor, group=self.replicas)

    def total(self, x: Tensor) -> Tensor:
        """Return the sum over all processes."""
        if self.size > 1:
            x = x.clone()
            with _answering():
                dist.all_reduce(x)
        return x

    def all_min(self, number: int) -> int:
        """Return the smallest of the processes' numbers."""
        if self.size > 1:
            held = torch.tensor(number)
            with _answering():
                dist.all_reduce(held, dist.ReduceOp.MIN)
            number = int(held)
        return number

    def broadcast_(self, tensors: Sequence[Tensor]) -> None:
        """Make tensors those of the first process; what all hold alike must not drift apart."""
        if self.size > 1:
            with _answering():
                for tensor in tensors:
                    dist.broadcast(tensor, 0)

    def all_or_none(self, do: Callable[[], None]) -> None:
        """Do something in every process; if one fails, all fail with what it says, and none goes on."""
        failure: ModulekgeError | None = None
        try:
            do()
        except ModulekgeError as error:
            failure = error
        failed = self.all_min(self.rank if failure else self.size)
        if failed < self.size:
            said = self._heard(str(failure), failed)
            raise failure or ModulekgeError(said)

    def on_main(self, do: Callable[[], object]) -> str:
        """Do something in the first process; return what it returns, as text. If it fails, all fail alike."""
        said, failure = "", None
        if self.is_main:
            try:
                said = f"={do()}"
            except ModulekgeError as error:
                if self.size == 1:
                    raise
                said, failure = f"!{error}", error
        said = self._heard(said)
        if said.startswith("!"):
            raise failure or ModulekgeError(said[1:])
        return said[1:]

    def _heard(self, text: str, speaker: int = 0) -> str:
        """Return the text of one process."""
        if self.size == 1:
            return text
        told = text.encode("utf-8", "surrogateescape") or b" "  # a path may hold any bytes
        held = torch.frombuffer(bytearray(told), dtype=torch.uint8)
        length = torch.tensor(len(held))
        with _answering():
            dist.broadcast(length, speaker)
            held = held if self.rank == speaker else torch.empty(int(length), dtype=torch.uint8)
            dist.broadcast(held, speaker)
        return held.numpy().tobytes().decode("utf-8", "surrogateescape")


ALONE = Workers()


def _part(count: int, i: int, n: int) -> slice:
    return slice(i * count // n, (i + 1) * count // n)


@contextmanager
def _answering() -> Iterator[None]:
    """Say it so that a user knows what to do if a process does not answer."""
    try:
        yield
    except RuntimeError:
        raise lost() from None


def lost() -> LostError:
    """Return what to raise where a process of this job is gone."""
    return LostError(
        "a process of this job ended or does not answer; what was kept stays, and 'modulekge resume' "
        "goes on from it, as torchrun does by itself with --max-restarts"
    )


def many() -> bool:
    """Whether torchrun started this process, be it the only one."""
    return all(name in os.environ for name in _PLACE)


def restarted() -> bool:
    """Whether torchrun has begun anew after a process was lost."""
    return many() and _TURN != "0"


@cache
def _store() -> Store:
    """Meet the other processes."""
    try:
        seconds = timedelta(seconds=float(os.environ.get(_TIMEOUT, "1800")))
    except (ValueError, OverflowError):
        raise ConfigError(f"{_TIMEOUT} = {os.environ[_TIMEOUT]}: expected a number of seconds") from None
    backend = "gloo"
    if torch.cuda.is_available():
        own = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        backend = f"cpu:gloo,cuda:{'nccl' if own else 'gloo'}"  # NCCL wants a GPU for each
    store, rank, size = next(rendezvous("env://", timeout=seconds))
    store = PrefixStore(f"modulekge/{_TURN}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=seconds)
    return store


def workers(shards: int = 0) -> Workers:
    """Return the processes of this job, of which so many hold a table between them; 0: all of them."""
    if not many():
        return ALONE
    _store()
    size = dist.get_world_size()
    if size % (shards or size):
        raise ConfigError(f"train.shards = {shards}: does not divide the {size} processes of torchrun")
    return _grouped(shards or size)


@cache
def _grouped(shards: int) -> Workers:
    rank, size = dist.get_rank(), dist.get_world_size()
    copies = [dist.new_group(list(range(first, first + shards))) for first in range(0, size, shards)]
    replicas = [dist.new_group(list(range(first, size, shards))) for first in range(shards)]
    return Workers(rank, size, shards, copies[rank // shards], replicas[rank % shards])


def speaks() -> bool:
    """Whether it is this process that says what all have met with: the first that asks, if they have met."""
    if not many():
        return True
    if dist.is_initialized():
        try:
            return bool(_store().add("said", 1) == 1)
        except RuntimeError:  # the one that kept count is gone
            return True
    return os.environ.get("RANK", "0") == "0"


def part() -> None:
    """Leave the others."""
    if many() and dist.is_initialized():
        dist.destroy_process_group()
