"""The fenced blocks of a document: commands, Python, files and outputs.

Blocks of `console` are commands that the tests run, in order, together with those of `python`. A block with a
`title` is the file of that name. A block of `text` directly below such a block is its output; a line `...` in it
leaves something out. A comment `<!-- not run: REASON -->` before a block exempts it. Blocks of `sh` are only
checked.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"(?:<!-- not run: (?P<exempt>[^\n]+) -->\n+)?"
    r'^(?P<indent> *)```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?[^\n]*\n(?P<body>.*?)^ *```',
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block.

    `title` is the name of the file that it is; `exempt` says why it is not run; `adjacent` says whether only blank
    lines are between it and the block above.
    """

    language: str
    title: str | None
    body: str
    exempt: str | None
    adjacent: bool


def blocks_of(document: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document."""
    source, end = document.read_text(encoding="utf-8"), 0
    for match in FENCE.finditer(source):
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        adjacent = end > 0 and not source[end : match.start()].strip()
        yield Block(match["language"], match["title"], body, match["exempt"], adjacent)
        end = match.end()
