"""What is trained: weights of a row, used as an embedding or as messages along paths."""

from abc import ABC, abstractmethod

import torch
from torch import Generator, nn

from modulekge.models.scorer import Scorer
from modulekge.models.spec import ModelSpec
from modulekge.workers import Workers


class Model(nn.Module, ABC):
    """Weights that answer questions about the entities of a graph; what they mean, the row says."""

    spec: ModelSpec
    n_entities: int
    k: int  # blocks of an element
    workers: Workers
    held: slice  # the entities whose weights this process has

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the weights lie."""

    @property
    @abstractmethod
    def signature(self) -> object:
        """What two models must have in common for equal weights to mean the same."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers with which an entity is scored."""

    @property
    @abstractmethod
    def entity_numbers(self) -> int:
        """Numbers that are stored for an entity."""

    @abstractmethod
    def draw(self, generator: Generator, scalar_scale: float, vector_scale: float) -> "Model":
        """Start from random numbers."""

    @abstractmethod
    def scorer(self) -> Scorer:
        """Return what answers questions with the weights as they are now."""

    @abstractmethod
    def samples(self) -> torch.Tensor:
        """Return numbers that are finite if the weights describe finite relations."""
