"""Write the reference of the command line and of `domain.toml` from the code: docs/reference.

Run: python tools/reference_pages.py [--check]. With --check, nothing is written; a page that differs is an error.
"""

import sys
from pathlib import Path

from command_page import command_page
from domain_page import domain_page
from python_page import python_page

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def main(check: bool) -> None:
    """Write the pages, or report those that differ."""
    pages = {"cli.md": command_page(), "domain-toml.md": domain_page(), "python-api.md": python_page()}
    different = [name for name, text in pages.items() if read(FOLDER / name) != text]
    if check and different:
        sys.exit(f"error: {', '.join(different)} in docs/reference differ from the code\n  Run: make reference")
    for name in different:
        (FOLDER / name).write_text(pages[name], encoding="utf-8")
        print(f"docs/reference/{name}")


def read(path: Path) -> str:
    """Return the text of a file, nothing if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    main("--check" in sys.argv)
