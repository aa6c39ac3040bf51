"""How Sphinx makes the site of these pages: `nox -s docs_site`."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

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


def setup(app: Sphinx) -> None:
    app.connect("include-read", _link_root_pages)
