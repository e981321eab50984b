"""Hooks of MkDocs: pages of the repository outside `docs` become pages of the site, and links to them work.

The README is the first page. A file outside `docs` to which a page links, and that is not a page, is copied to
`files/`.
"""

import posixpath
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "licenses/README.md": "project/licences.md",
}
"""Where pages outside `docs` are on the site."""
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r'(?<=\]\()[^)\s]+(?=\))|(?<=(?:src|ref)=")[^"]+(?=")')
ABSOLUTE = re.compile(r"[a-z]+:|#|/")


def source_of(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    return SOURCES.get(page, f"docs/{page}")


def target_of(link: str, source: str) -> str | None:
    """Return the path in the repository of a relative link of a page; None if there is no such file."""
    path = link.partition("#")[0]
    if ABSOLUTE.match(link) or not path:
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    return target if (ROOT / target).is_file() else None


def place_of(target: str) -> str:
    """Return where a file of the repository is on the site."""
    return PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else f"files/{target}")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files outside `docs`."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    pages = [file.src_uri for file in files.documentation_pages()]
    for target in sorted({target for page in pages for target in targets(page)}):
        if place_of(target).startswith("files/"):
            files.append(File.generated(config, place_of(target), abs_src_path=str(ROOT / target)))
    return files


def targets(page: str) -> Iterator[str]:
    """Yield the files to which a page links."""
    source = source_of(page)
    for link in LINK.findall((ROOT / source).read_text(encoding="utf-8")):
        if target := target_of(link, source):
            yield target


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links follow files to their places on the site."""
    place = page.file.src_uri
    if place.startswith("files/"):
        return markdown
    source = source_of(place)

    def moved(match: re.Match[str]) -> str:
        target = target_of(match[0], source)
        if target is None:
            return match[0]
        relative = posixpath.relpath(place_of(target), posixpath.dirname(place) or ".")
        return relative + match[0][len(match[0].partition("#")[0]) :]

    return LINK.sub(moved, markdown)


def on_config(config: MkDocsConfig, **_: Any) -> MkDocsConfig:
    """Show the version."""
    config.copyright = f"fewparse {version('fewparse')} · MIT License"
    return config
