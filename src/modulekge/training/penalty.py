r"""The penalty $\Phi$ of section 4.6."""

from jaxtyping import Float
from torch import Tensor

from modulekge.algebra.norms import NORM_MAPS
from modulekge.config import PenaltyConfig
from modulekge.models.model import Model
from modulekge.shapes import Ids


def penalty(model: Model, heads: Ids, relations: Ids, tails: Ids, config: PenaltyConfig) -> Float[Tensor, ""]:
    r"""$\frac{\lambda}{B} \sum (\lambda_1 G(h) + \lambda_2 G(r) + \lambda_3 G(t))$ over a batch."""
    norm = NORM_MAPS[config.form]
    total = (
        config.head * norm(model.entity_norms(heads), config.p)
        + config.relation * norm(model.relation_norms(relations), config.p)
        + config.tail * norm(model.entity_norms(tails), config.p)
    )
    return config.strength * total.mean()
