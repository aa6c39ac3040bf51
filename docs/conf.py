"""How Sphinx makes the site of these pages: `nox -s docs_site`.

Sphinx with MyST and Furo, not Material for MkDocs: its package says "inactive", and MkDocs 1, on which it stands, has
had no release since 2024. Sphinx turns every reference that leads nowhere into an error. Its search needs no server.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tilestack.__main__ import parser

project = "tilestack"
author = "the tilestack authors"
html_title = "tilestack"
extensions = ["myst_parser", "ci.site.flowchart", "ci.site.lexer"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
nitpicky = True

html_theme = "furo"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
pygments_style, pygments_dark_style = "default", "github-dark"
exclude_patterns = ["runners/*.md"]

# The pages of the repository's root, where GitHub looks for them, are pages of the site too.
ROOT_PAGES = {name: f"docs/{name.lower()}" for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}


def _link_root_pages(app: Sphinx, path: Path, page: str, content: list[str]) -> None:  # noqa: ARG001 (Sphinx's signature)
    for name, ours in ROOT_PAGES.items():
        content[0] = content[0].replace(f"]({name})", f"]({ours})")


class Commands(SphinxDirective):
    """A section for each command of `tilestack`, with what its `--help` says."""

    def run(self) -> list[nodes.Node]:
        commands = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
        parts = [f"## {name}\n\n```text\n{one.format_help()}```" for name, one in sorted(commands.choices.items())]
        return self.parse_text_to_nodes("\n\n".join(parts), allow_section_headings=True)


def setup(app: Sphinx) -> None:
    app.add_directive("commands", Commands)
    app.connect("include-read", _link_root_pages)
