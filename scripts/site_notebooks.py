"""A hook of mkdocs: notebooks are pages, with what they showed when scripts/run_gallery.py kept it.

A notebook is JSON and holds its outputs, so nothing has to be run or installed for it.
"""

import json
from html import escape
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ENDING = ".ipynb"


class Notebook(File):
    """A file that is a page though it does not end in .md, so that links to it lead to the page."""

    def is_documentation_page(self) -> bool:
        """Say that mkdocs renders it."""
        return True


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put a page in the place of each notebook."""
    for file in [file for file in files if file.src_uri.endswith(_ENDING)]:
        files.remove(file)
        page = Notebook.generated(config, file.src_uri, content=markdown(json.loads(file.content_string)))
        files.append(page)
    return files


def markdown(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown; a picture is called after the heading it stands under."""
    parts, heading = list[str](), ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = next((x.lstrip("# ") for x in source.splitlines()[::-1] if x.startswith("#")), heading)
            parts.append(source)
        else:
            parts += [f"```python\n{source}\n```", *(_shown(output, heading) for output in cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def _shown(output: dict[str, Any], heading: str) -> str:
    """Return what a cell shows: a picture, else HTML, else text."""
    kinds = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if picture := kinds.get("image/png"):
        return f'<img alt="{escape(heading)}" src="data:image/png;base64,{"".join(picture.split())}">'
    if table := kinds.get("text/html"):
        return f'<div style="overflow-x: auto">{table}</div>'
    return f"```text\n{(kinds.get('text/plain') or ''.join(output['text'])).rstrip()}\n```"
