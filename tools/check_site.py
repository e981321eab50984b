"""Check the built documentation: its links and anchors, that it loads nothing from elsewhere, and its structure.

Structure: a page has as many headings, lists, tables and blocks of code as in the Markdown of the repository's own
viewer, which reads lists and indentation otherwise than MkDocs. Run: python tools/check_site.py SITE.
"""

import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from site_hooks import ROOT, source_of

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""The attributes by which a page loads something."""
STRUCTURE = ("h1", "h2", "h3", "ul", "ol", "li", "tr", "td", "pre", "img")
GENERATED = "::: "
"""In the Markdown of a page that mkdocstrings fills."""


class Reader(HTMLParser):
    """Reads the anchors, the links, what is loaded, and the elements of the article of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.elements: Counter[str] = Counter()
        self._in_article = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read an element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self._in_article |= tag == "article"
        if self._in_article:
            self.elements[tag] += 1
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if (attribute := LOADED.get(tag)) in values and values.get("rel") != "canonical":
            self.loaded.append(values[attribute])

    def handle_endtag(self, tag: str) -> None:
        """Note the end of the article."""
        self._in_article &= tag != "article"


def main(site: Path) -> None:
    """Check all pages; exit with the list of mistakes if there are any."""
    pages = {path.resolve(): Reader(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    mistakes = []
    for path, page in pages.items():
        found = [
            *wrong_links(path, page, pages, site.resolve()),
            *wrong_structure(path.relative_to(site.resolve()), page),
        ]
        found += [f"loads {url}" for url in page.loaded if urlsplit(url).netloc]
        mistakes += [f"{path.relative_to(site.resolve())}: {mistake}" for mistake in found]
    if mistakes:
        sys.exit("\n".join(mistakes))
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values()):,} links")


def wrong_links(path: Path, page: Reader, pages: dict[Path, Reader], site: Path) -> list[str]:
    """Return the links of a page to a file or an anchor that is not there."""
    wrong = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        folder = site if parts.path.startswith("/") else path.parent
        target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.exists():
            wrong.append(f"no file {link}")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            wrong.append(f"no anchor {link}")
    return wrong


def wrong_structure(path: Path, page: Reader) -> list[str]:
    """Return how the structure of a page differs from that of its source, if it is a page of the repository."""
    source = ROOT / source_of(path.with_suffix(".md").as_posix())
    if not source.exists() and path.name == "index.html":
        source = source.with_name("README.md")
    markdown = source.read_text(encoding="utf-8") if source.exists() else GENERATED
    if GENERATED in markdown:
        return []
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    expected = Reader(f"<article>{html}</article>").elements
    return [
        f"{page.elements[tag]} {tag}, {expected[tag]} in {source.relative_to(ROOT)}"
        for tag in STRUCTURE
        if page.elements[tag] != expected[tag]
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
