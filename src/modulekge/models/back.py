"""What a model needs to ask its candidates back."""

from dataclasses import dataclass, field

from torch import Tensor

from modulekge.config import AskingConfig
from modulekge.shapes import Triples

NOT_ASKED = AskingConfig()


@dataclass(frozen=True, eq=False)
class Back:
    r"""The weights $\lambda, \nu, \mu$ of what candidates say when asked back, and what is added in any case.

    The latter, $\mu \log(1 + n_r(e)) - \nu \max_c f_{r^{-1}}(e, c)$ of every entity $e$, is kept for each
    relation $r$ for which it has been reckoned.
    """

    weights: AskingConfig = NOT_ASKED
    train: Triples | None = None  # questions with their answers, which are counted
    offsets: dict[int, Tensor] = field(default_factory=dict)
    last: dict[int, Tensor] = field(default_factory=dict, repr=False)  # all queries for one relation

    def __bool__(self) -> bool:
        return self.weights != NOT_ASKED

    @property
    def adds(self) -> bool:
        """Whether something is added in any case."""
        return max(self.weights.rivals, self.weights.counts) > 0

    def __deepcopy__(self, memo: object) -> "Back":
        """A copy may be made while another thread reckons."""
        return Back(self.weights, self.train, self.offsets.copy())


def name_asking(name: str, weights: AskingConfig) -> str:
    """Return the name of a model that is asked so."""
    return name if weights == NOT_ASKED else f"{name}, asking back"
