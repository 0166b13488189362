"""The loss against candidates drawn for all questions of a batch, which touches their rows and no others."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.models.embedding import Embedding
from modulekge.models.spec import Build
from modulekge.shapes import Queries, Scores

Known = tuple[Int[Tensor, " known"], Int[Tensor, " known"]]  # rows and columns of known answers
_IN_CACHE = 1 << 18  # scores that stay in a core's own cache from one operation to the next


def drawn_softmax(
    part: Embedding, queries: Queries, known: Known, share: Float[Tensor, " b"], build: Build | None = None
) -> tuple[Float[Tensor, ""], Queries]:
    r"""$\sum_b w_b (\log (e^{f_{bt}} + \sum_{c} e^{f_{bc}}) - f_{bt})$, and its gradients by the queries.

    $c$ runs over the candidates drawn for the batch that are not known to answer question $b$. ``part`` holds
    the heads of the batch, its answers and the candidates, in this order; the gradients by the last two
    become those of its tables. The scores become their own gradients, in place.
    """
    b = len(queries)
    entities = part.entities(slice(b, None), build)
    q, e, w = (x.detach().requires_grad_() for x in (queries, entities, part.score_weights))
    score = part.spec.score
    if score.bilinear:
        own = (q * e[:b]).flatten(1).sum(1)
    else:
        own = score.each(q, e[:b], torch.arange(b)[:, None], w)[:, 0]
    made = score.all_pairs(q, e[b:], w)
    scores, of_own, bias = made.detach(), own.detach().clone(), part.entity_bias
    if len(bias):
        scores += bias.detach()[2 * b :]
        of_own += bias.detach()[b : 2 * b]
    losses = _softmax_(scores, of_own, known, share)
    of_queries, of_entities, of_weights = torch.autograd.grad(
        [made, own], [q, e, w], [scores, of_own], allow_unused=True
    )
    entities.backward(of_entities)
    if len(bias):
        bias.grad = torch.cat([bias.new_zeros(b), of_own, scores.sum(0)])
    if of_weights is not None and len(w):
        part.score_weights.grad = of_weights
    return losses.sum(), of_queries


def _softmax_(
    scores: Scores, own: Float[Tensor, " b"], known: Known, share: Float[Tensor, " b"]
) -> Float[Tensor, " b"]:
    r"""$f_c \leftarrow w p_c$ and $f_t \leftarrow w (p_t - 1)$ in place; return $-w \log p_t$."""
    rows, columns = known
    scores.view(-1).index_fill_(0, rows * scores.shape[1] + columns, -torch.inf)
    losses = torch.empty_like(own)
    size = max(1, _IN_CACHE // scores.shape[1])
    for start in range(0, len(own), size):
        some = slice(start, start + size)
        part, answer, weight = scores[some], own[some], share[some]
        top = torch.maximum(part.amax(1), answer)
        part.sub_(top[:, None]).exp_()
        answer.sub_(top)
        total = part.sum(1) + answer.exp()
        losses[some] = weight * (total.log() - answer)
        part.mul_((weight / total)[:, None])
        answer.exp_().div_(total).sub_(1).mul_(weight)
    return losses
