"""The tensors of this library, by name.

Axes: ``b`` questions of a batch, ``e`` entities, ``n`` blocks (the paper's k), ``d`` components of an
element, ``w`` numbers that parametrize an element, ``m`` triples. Components lie outside blocks, so that a
component of all blocks is contiguous and products of elements vectorise. An axis with an underscore may
differ between the tensors of one call; the others must agree, which the tests check.
"""

from jaxtyping import Float, Int
from torch import Tensor

Ids = Int[Tensor, " b"]
Triples = Int[Tensor, "_m 3"]
Elements = Float[Tensor, "*rows _d n"]
Numbers = Float[Tensor, "*rows _w n"]
Queries = Float[Tensor, "b _q n"]
Entities = Float[Tensor, "e _d n"]
Scores = Float[Tensor, "b e"]

__all__ = ["Elements", "Entities", "Ids", "Numbers", "Queries", "Scores", "Triples"]
