"""Docstrings as the site shows them: formulas as MathML, examples as code; an extension of Griffe.

mkdocs.yml names this file. Nothing of it is needed to read a docstring in an editor or by help().
"""

import re
from typing import Any

from griffe import Extension, GriffeLoader, Object
from latex2mathml.converter import convert

_FORMULA = re.compile(r"(\$\$?)(.+?)\1", re.DOTALL)
_EXAMPLE = re.compile(r"(?:^>>> .*\n?)(?:^(?!$).*\n?)*", re.MULTILINE)


def shown(text: str) -> str:
    """A docstring with what Markdown would spoil written as it shows it."""

    def formula(found: re.Match[str]) -> str:
        return convert(found[2], display="block" if found[1] == "$$" else "inline")

    def example(found: re.Match[str]) -> str:
        lines = found[0].replace("  # doctest: +SKIP", "").rstrip()
        return f"```pycon\n{lines}\n```\n"

    return _EXAMPLE.sub(example, _FORMULA.sub(formula, text))


class Docstrings(Extension):
    """Write every docstring so before it is rendered."""

    def on_object(self, *, obj: Object, loader: GriffeLoader, **kwargs: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = shown(obj.docstring.value)
