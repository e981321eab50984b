"""The reference of the public names of the package; mkdocstrings fills it in on the site."""

from collections.abc import Iterator

import fewparse
from fewparse import errors
from pages import GENERATED

GROUPS = {
    "Parsing": ("parser", "client", "example", "options", "events", "search"),
    "Domains": ("domains",),
    "Language models": ("lm", "retry", "vocabulary"),
    "Retrieval, prompts, ranking": ("retrieve", "prompt", "rerank"),
    "Constraints": ("constrain",),
    "Grammars": ("grammar",),
    "Evaluation and experiments": ("evaluate", "experiment"),
    "Tuning, feedback": ("tune", "confidence"),
}
"""The packages, or modules at the top level, whose names are in each section."""
OTHER = "Other"


def python_page() -> str:
    """Return the page of all public names, by section."""
    lines = [
        "# Python API",
        "",
        GENERATED,
        "",
        "Every public name can be imported from `fewparse`. [Python](../python.md) shows how they are used. "
        "The documentation as a site (`make docs`) shows signatures and docstrings here.",
        "",
    ]
    sections: dict[str, list[str]] = {title: [] for title in (*GROUPS, OTHER)}
    for title, _, name in sorted(placed_names()):
        sections[title].append(name)
    for title, names in sections.items():
        if names:
            lines += [f"## {title}", "", *(line for name in names for line in entry(name))]
    return "\n".join([*lines, "## Errors", "", "::: fewparse.errors", "    options:", *ERROR_OPTIONS]) + "\n"


ERROR_OPTIONS = ("      show_root_heading: false", "      show_root_toc_entry: false", "      show_bases: true")


def placed_names() -> Iterator[tuple[str, int, str]]:
    """Yield the section, the place in it, and the name of everything public except errors."""
    places = {package: (title, i) for title, group in GROUPS.items() for i, package in enumerate(group)}
    for name in set(fewparse.__all__) - set(errors.__all__):
        yield *places.get(fewparse._MODULE_OF[name].split(".")[1], (OTHER, 0)), name


def entry(name: str) -> list[str]:
    """Return the lines of a name."""
    return [f"::: {fewparse._MODULE_OF[name]}.{name}", ""]
