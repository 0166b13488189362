"""Steps of training on a GPU, recorded once as a graph of kernels and then replayed without the host."""

import warnings
from collections.abc import Callable

import torch
from torch import Generator, Tensor

_EAGER = 3  # full batches before a step is recorded; they load and tune what it is made of


class Recorded:
    """A step on a batch: taken as it comes on a CPU, recorded and replayed on a GPU.

    Steps run on a stream of their own. A recorded one reads its inputs at fixed places, to which they are
    copied; inputs of other shapes, such as those of a shorter batch, are taken as they come.
    """

    def __init__(
        self, take: Callable[..., None], shaped: tuple[Tensor, ...], generator: Generator, alike: bool
    ) -> None:
        """Take steps on inputs shaped so; only where all are ``alike``, one can stand for the others."""
        self._take, self._inputs, self._generator = take, shaped, generator
        self._device = shaped[0].device
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        if self._stream:  # autograd's own thread multiplies first, which PyTorch mends and warns of
            warnings.filterwarnings("ignore", "Attempting to run cuBLAS")
        self._to_go = _EAGER if self._stream and alike else -1
        self._graph: torch.cuda.CUDAGraph | None = None
        self._read = torch.cuda.Event() if self._stream else None

    def wait(self) -> None:
        """Let all that is asked for on the current stream come after the steps so far."""
        if self._stream:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def begin(self, *inputs: Tensor) -> None:
        """Let the steps that follow come after all that was asked for so far, such as these inputs."""
        if self._stream:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))
            for given in inputs:
                given.record_stream(self._stream)

    def catch_up(self) -> None:
        """Wait until the last inputs have been read, so that the host is one step ahead and no more."""
        if self._read:
            self._read.synchronize()

    def __call__(self, *inputs: Tensor) -> None:
        """Take one step, or on a GPU have it taken soon."""
        if not self._stream or not self._read:
            self._take(*inputs)
            return
        alike = all(a.shape == b.shape for a, b in zip(inputs, self._inputs, strict=True))
        with torch.cuda.stream(self._stream):
            if alike and self._to_go == 0:
                self._replay(inputs)
            else:
                self._take(*inputs)
                self._read.record()
                self._to_go -= alike and self._to_go > 0

    def _replay(self, inputs: tuple[Tensor, ...]) -> None:
        """Take a step as recorded; where none can be recorded, this one and all others as they come."""
        for own, given in zip(self._inputs, inputs, strict=True):
            own.copy_(given)
        if self._read:
            self._read.record()
        try:
            self._graph = self._graph or self._record()
        except RuntimeError as error:
            warnings.warn(f"steps are not replayed, which is slower: {error}", stacklevel=2)
            self._to_go = -1
            self._take(*inputs)
        else:
            self._graph.replay()

    def _record(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, stream=self._stream):
            self._take(*self._inputs)
        return graph
