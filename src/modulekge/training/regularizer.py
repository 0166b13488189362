r"""The regularizer $\Phi$ of section 4.6."""

from jaxtyping import Float
from torch import Tensor

from modulekge.algebra.norms import NORM_MAPS
from modulekge.config import RegularizerConfig
from modulekge.models.embedding import Embedding, Some


def regularization(
    model: Embedding, heads: Some, relations: Some, tails: Some, config: RegularizerConfig
) -> Float[Tensor, ""]:
    r"""$\lambda (\lambda_1 G(h) + \lambda_2 G(r) + \lambda_3 G(t) + \mu (G(hr) + G(tr)))$, mean over a batch.

    A head is taken as it is multiplied: with what the relation adds to it, if anything, which nothing else
    holds. Moduli multiply, so $N(hr) = N(h) N(r)$: with $p = 2$ the last two terms are those of DURA.
    """
    h, t = model.head_norms(heads, relations), model.entity_norms(tails)
    r = model.relation_norms(relations)
    terms = (
        (config.head, h),
        (config.relation, r),
        (config.tail, t),
        *((config.moved, x * r) for x in (h, t)),
    )
    norm = NORM_MAPS[config.form]
    total = sum((rate * norm(x, config.p) for rate, x in terms if rate), h.new_zeros(len(h)))
    return config.weight * total.mean()
