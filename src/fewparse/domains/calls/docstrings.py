"""Read docstrings: the summary, and what they say about parameters, in the styles of Google, NumPy and Sphinx."""

import re
from typing import NamedTuple

from fewparse.text import one_line

SECTION = re.compile(r"(?:Args|Arguments|Parameters|Params)\s*:?\s*$", re.IGNORECASE)
OTHER = r"(?:Returns?|Raises?|Yields?|Examples?|Notes?|See Also|References)"
OTHER_SECTION = re.compile(rf"{OTHER}\s*:?\s*$", re.IGNORECASE)
UNDERLINE = re.compile(r"-{3,}\s*$")
SPHINX = re.compile(r"\s*:param(?:eter)?\s+(?:[^:\s]+\s+)?\*{0,2}(\w+)\s*:\s*(.*)")
SPHINX_OTHER = re.compile(r"\s*:\w+[^:]*:")
GOOGLE = re.compile(r"\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
NUMPY = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?$")


class Docstring(NamedTuple):
    """The first paragraph of a docstring, and its descriptions of parameters by name."""

    summary: str
    parameters: dict[str, str]


def read_docstring(text: str) -> Docstring:
    """Read a docstring without indentation, as `inspect.getdoc` returns it."""
    lines = text.split("\n")
    summary: list[str] = []
    for line in lines:
        if not line.strip() or SECTION.match(line) or OTHER_SECTION.match(line) or SPHINX_OTHER.match(line):
            break
        summary.append(line.strip())
    found = {**sphinx_parameters(lines), **section_parameters(lines)}
    described = {key: one_line(about) for key, about in found.items() if about.strip()}
    return Docstring(" ".join(summary), described)


def sphinx_parameters(lines: list[str]) -> dict[str, str]:
    """Return the descriptions after `:param name:`, with their further lines."""
    found: dict[str, str] = {}
    key = None
    for line in lines:
        if match := SPHINX.match(line):
            key = match[1]
            found[key] = match[2]
        elif SPHINX_OTHER.match(line) or not line.strip():
            key = None
        elif key is not None:
            found[key] += f" {line}"
    return found


def section_parameters(lines: list[str]) -> dict[str, str]:
    """Return the descriptions of a section `Args:` (Google) or `Parameters` with an underline (NumPy)."""
    start = next((i for i, line in enumerate(lines) if SECTION.match(line)), None)
    if start is None:
        return {}
    numpy = start + 1 < len(lines) and UNDERLINE.match(lines[start + 1]) is not None
    body = lines[start + 1 + numpy :]
    pattern = NUMPY if numpy else GOOGLE
    indent = next((len(line) - len(line.lstrip()) for line in body if line.strip()), 0)
    found: dict[str, str] = {}
    key = None
    for line in body:
        depth = len(line) - len(line.lstrip())
        if line.strip() and (depth < indent or OTHER_SECTION.match(line)):
            break
        match = pattern.match(line) if depth == indent else None
        if match:
            key = match[1]
            found[key] = "" if numpy else match[2]
        elif key is not None:
            found[key] += f" {line}"
    return found
