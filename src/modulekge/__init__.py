"""Module embeddings of knowledge graphs.

>>> import modulekge
>>> run = modulekge.train("world", "ModulE-HH")  # doctest: +SKIP
>>> modulekge.evaluate(run).both["mrr"]  # doctest: +SKIP
>>> modulekge.predict(run, head="France", relation="borders", k=3)  # doctest: +SKIP
"""

from modulekge.lazy import attach
from modulekge.version import __version__

__getattr__, __dir__, __all__ = attach(__name__, __file__)
__all__ += ["__version__"]
