r"""A row of the table as a message: $(s, v) \mapsto (T_{s_p}(s), T_{v_p}(v))$ along an edge."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.algebra.algebra import ALGEBRAS
from modulekge.algebra.groups import Action, Group
from modulekge.errors import ConfigError
from modulekge.models.spec import ModelSpec
from modulekge.shapes import Elements, Numbers


@dataclass(frozen=True)
class Message:
    """How a relation moves the state of an entity: scalar and vector, each by its own group.

    A row is refused whose relations do more than move: those that put a weight beside what they moved.
    """

    spec: ModelSpec

    def __post_init__(self) -> None:
        if not is_message(self.spec):
            finding = (
                f"{self.spec.scaling.name} is not linear in what it moves, so it cannot act along a path"
            )
            raise ConfigError(f"model {self.spec.name}: {finding}; choose another row")

    @property
    def parts(self) -> tuple[tuple[Group, Action], ...]:
        """What there is of scalar and vector, and how a relation moves it."""
        spec = self.spec
        pairs = (spec.scalar, spec.scaling), (spec.vector, spec.rotation)
        return tuple((group, action) for group, action in pairs if not group.trivial)

    @property
    def size(self) -> int:
        """Components of a state, per block."""
        return sum(group.size for group, _ in self.parts)

    @property
    def products(self) -> tuple[tuple[int, int, bool], ...] | None:
        r"""Components of each part and of what multiplies it, and whether from the left; else None.

        Where all parts lie in $\mathbb R$, $\mathbb C$ or $\mathbb H$ and are multiplied, a GPU has kernels.
        """
        found = []
        for group, action in self.parts:
            size = 0 if action.group.trivial else action.group.size
            if group.size not in (1, 2, 4) or group.algebra not in ALGEBRAS or size not in (0, 1, 2, 4):
                return None
            if size and not action.operation.side:
                return None
            found.append((group.size, size, action.operation.side == "left"))
        return tuple(found)

    @property
    def width(self) -> int:
        """Numbers that name a relation's elements, per block."""
        return sum(self._widths)

    @property
    def _widths(self) -> list[int]:
        return [0 if action.group.trivial else action.group.width for _, action in self.parts]

    @property
    def terms(self) -> int:
        """Products that move a component of a state: 1 over R, 4 over H."""
        return max(
            1, *(min(group.size, size) for (group, _), size in zip(self.parts, self._widths, strict=True))
        )

    def elements(self, numbers: Numbers) -> Elements:
        """Return the elements that numbers name: those of the scaling, then those of the rotation."""
        named = zip(self.parts, numbers.split(self._widths, dim=-2), strict=True)
        moves = [action.group.point(part) for (_, action), part in named if not action.group.trivial]
        return torch.cat(moves, dim=-2)

    def move(self, x: Elements, elements: Elements) -> Elements:
        r"""$(T_{s_p}(s), T_{v_p}(v))$; where $T$ adds, it moves what was reached, a state not 0."""
        moved, place, adds = [], 0, False
        states = x.split([group.size for group, _ in self.parts], dim=-2)
        for (group, action), state in zip(self.parts, states, strict=True):
            if not action.group.trivial:
                size = action.group.size
                state = action.operation.act(group.algebra, elements[..., place : place + size, :], state)
                place, adds = place + size, adds or action.operation.adds
            moved.append(state)
        y = torch.cat(moved, dim=-2) if len(moved) > 1 else moved[0]
        return y * reached(x) if adds else y


def is_message(spec: ModelSpec) -> bool:
    """Whether relations of a row do nothing but move, so that they can act one after another."""
    return not any(action.operation.weighs for action in (spec.scaling, spec.rotation))


def reached(x: Elements) -> Float[Tensor, "*rows 1 1"]:
    """1 where a state is not 0, that is where a path from the head has arrived; else 0."""
    return (x.detach().abs().amax((-2, -1), keepdim=True) != 0).to(x.dtype)
