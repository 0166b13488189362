"""What the site does beside MkDocs; mkdocs.yml names this file, as an extension of Griffe and as a hook.

Docstrings: formulas become MathML, examples code. Search: tables of results come after the pages on them.
"""

import re
from typing import Any

from griffe import Extension, GriffeLoader, Object
from latex2mathml.converter import convert

_ROLE = re.compile(r":(?:class|func|meth|mod):(?=`)")
_FORMULA = re.compile(r"(\$\$?)(.+?)\1", re.DOTALL)
_EXAMPLE = re.compile(r"(?:^>>> .*\n?)(?:^(?!$).*\n?)*", re.MULTILINE)


def shown(text: str) -> str:
    """A docstring with what Markdown would spoil written as it shows it."""

    def formula(found: re.Match[str]) -> str:
        return convert(found[2], display="block" if found[1] == "$$" else "inline")

    def example(found: re.Match[str]) -> str:
        lines = found[0].replace("  # doctest: +SKIP", "").rstrip()
        return f"```pycon\n{lines}\n```\n"

    return _EXAMPLE.sub(example, _FORMULA.sub(formula, _ROLE.sub("", text)))


class Docstrings(Extension):
    """Write every docstring so before it is rendered."""

    def on_object(self, *, obj: Object, loader: GriffeLoader, **kwargs: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = shown(obj.docstring.value)


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Let the search find what explains before what only lists: thousands of rows hold every word."""
    if page.file.src_uri.startswith("studies/"):
        page.meta.setdefault("search", {"boost": 0.1})
    return markdown
