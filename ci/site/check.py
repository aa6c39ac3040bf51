"""Checks a built site: every link leads to a page and a place that exist, and no page loads anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
LINKED = frozenset({"canonical", "search", "index", "next", "prev", "top", "up", "author", "help", "contents"})


@dataclass
class _Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    links: list[str] = field(default_factory=list[str])
    loads: list[str] = field(default_factory=list[str])
    places: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and "href" in found and found.get("rel") not in LINKED:
            self.loads.append(found["href"])
        elif tag in LOADS and LOADS[tag] in found:
            self.loads.append(found[LOADS[tag]])


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def problems(site: Path) -> Iterator[str]:
    """A line for each link that leads nowhere, and for each file that a page or a style sheet loads from elsewhere."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for target in page.loads:
            parts = urlsplit(target)
            if parts.netloc or parts.scheme not in ("", "data"):
                yield f"{name}: loads {target} from elsewhere"
            elif not parts.scheme and parts.path and not (path.parent / unquote(parts.path)).exists():
                yield f"{name}: loads {target}, which does not exist"
        for target in page.links:
            parts = urlsplit(target)
            if parts.netloc or parts.scheme:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.exists():
                yield f"{name}: the link {target} leads nowhere"
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].places:
                yield f"{name}: {target}: that page has no such place"
    for sheet in sorted(site.rglob("*.css")):
        text = sheet.read_text().replace(" ", "").replace('"', "").replace("'", "")
        if any(word in text for word in ("url(http", "url(//", "@importhttp", "@importurl(http")):
            yield f"{sheet.relative_to(site)}: loads something from elsewhere"
