"""Derivations as pictures: for the terminal, and as SVG that stands on its own on light and on dark ground."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from fewparse.grammar.analysis.derivation import Branch

LONGEST_LINE, MOST_LINES = 28, 6
LONGEST_NOTE, MOST_NOTE_LINES = 34, 3
GAP, LEVEL_GAP, MARGIN, PADDING = 14.0, 30.0, 12.0, 9.0
LINE, NOTE_LINE = 17.0, 14.0
CELL, NOTE_CELL, LABEL_CELL, LABEL_CAPITAL = 7.7, 6.8, 7.9, 9.8
MOST_WIDTH = 2_400.0
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
STYLE = """
rect { fill: #e9effd; stroke: #7f95cc; }
.text rect { fill: #fff5dc; stroke: #cda955; }
path { fill: none; stroke: #8a93a8; stroke-width: 1.4; }
text { text-anchor: middle; white-space: pre; fill: #1a2747; }
.name .first { font: 600 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.text .first { font: 12.5px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #4b360c; }
.note { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #5b6884; }
"""


def tree_text(branch: Branch) -> str:
    """A line for each name and each text, with lines drawn between them."""
    lines: list[str] = []
    stack: list[tuple[Branch | str, str | None, str, str]] = [(branch, None, "", "")]
    while stack:
        part, around, before, indent = stack.pop()
        if isinstance(part, str):
            lines.append(before + quoted(part))
            continue
        line = before + shown(part.label)
        if (only := sole_text(part)) is not None:
            line += " " + quoted(only)
        note = part.note(around)
        lines.append(line if note is None else f"{line}  ⇒ {shown(note)}")
        strokes = ("└─ ", "   ")
        for child in reversed(part.children if only is None else ()):
            stack.append((child, part.detail, indent + strokes[0], indent + strokes[1]))
            strokes = ("├─ ", "│  ")
    return "\n".join(lines)


def tree_svg(branch: Branch) -> str:
    """A picture with the whole derivation: names above what they are made of, the text from left to right."""
    boxes = list(boxed(branch))
    width, height = lay_out(boxes)
    scale = min(1.0, MOST_WIDTH / width)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'width="{width * scale:.1f}" height="{height * scale:.1f}" role="img" xml:space="preserve">',
        f"<style>{STYLE}</style>",
    ]
    for box in boxes:
        for child in box.children:
            middle = (box.y + box.height + child.y) / 2
            curve = f"{box.x:.1f} {middle:.1f} {child.x:.1f} {middle:.1f} {child.x:.1f} {child.y:.1f}"
            lines.append(f'<path d="M{box.x:.1f} {box.y + box.height:.1f}C{curve}"/>')
    lines += [drawn(box) for box in boxes]
    return "\n".join([*lines, "</svg>\n"])


@dataclass(slots=True, eq=False)
class Box:
    """A name or a text on the picture; x is its middle and y its top."""

    kind: str
    lines: list[str]
    notes: list[str]
    title: str
    level: int
    width: float
    height: float
    children: list["Box"] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    left: float = 0.0
    right: float = 0.0


def boxed(branch: Branch) -> Iterator[Box]:
    """A box for each name and each text, parents first."""
    stack: list[tuple[Branch | str, str | None, Box | None]] = [(branch, None, None)]
    while stack:
        part, around, parent = stack.pop()
        box = box_of(part, around, 0 if parent is None else parent.level + 1)
        if parent is not None:
            parent.children.append(box)
        if isinstance(part, Branch):
            stack += [(child, part.detail, box) for child in reversed(part.children or ("",))]
        yield box


def box_of(part: Branch | str, around: str | None, level: int) -> Box:
    """The box of a part, with its lines broken."""
    if isinstance(part, str):
        title, lines, notes = quoted(part), wrapped(quoted(part), LONGEST_LINE, MOST_LINES), []
        widths = [cells(line) * CELL for line in lines]
    else:
        note = part.note(around)
        title = shown(part.label) if note is None else f"{shown(part.label)} ⇒ {shown(note)}"
        lines = wrapped(shown(part.label), LONGEST_LINE, MOST_NOTE_LINES)
        notes = [] if note is None else wrapped(shown(note), LONGEST_NOTE, MOST_NOTE_LINES)
        widths = [sum(LABEL_CAPITAL if c.isupper() else LABEL_CELL * cells(c) for c in line) for line in lines]
        widths += [cells(line) * NOTE_CELL for line in notes]
    height = LINE * len(lines) + NOTE_LINE * len(notes) + PADDING
    kind = "text" if isinstance(part, str) else "name"
    return Box(kind, lines, notes, title, level, max(widths) + 2 * PADDING, height)


def lay_out(boxes: list[Box]) -> tuple[float, float]:
    """Give every box its place; the size of the picture.

    What is below a box has a stretch of the width to itself; the box is in the middle between its first child and
    its last.
    """
    for box in reversed(boxes):
        box.left, box.right = -box.width / 2, box.width / 2
        if box.children:
            end = 0.0
            for child in box.children:
                child.x = end - child.left
                end = child.x + child.right + GAP
            middle = (box.children[0].x + box.children[-1].x) / 2
            for child in box.children:
                child.x -= middle
            box.left, box.right = min(box.left, -middle), max(box.right, end - GAP - middle)
    heights = [0.0] * (1 + max(box.level for box in boxes))
    for box in boxes:
        heights[box.level] = max(heights[box.level], box.height)
    tops = [MARGIN]
    for height in heights:
        tops.append(tops[-1] + height + LEVEL_GAP)
    boxes[0].x = MARGIN - boxes[0].left
    for box in boxes:
        box.y = tops[box.level]
        for child in box.children:
            child.x += box.x
    return boxes[0].right - boxes[0].left + 2 * MARGIN, tops[-1] - LEVEL_GAP + MARGIN


def drawn(box: Box) -> str:
    """A box with its lines."""
    parts = [
        f'<g class="{box.kind}"><title>{escape(box.title, quote=False)}</title>',
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="7"/>',
    ]
    y = box.y + PADDING / 2
    for size, kind, lines in ((LINE, "first", box.lines), (NOTE_LINE, "note", box.notes)):
        for line in lines:
            baseline = y + size * 0.75
            parts.append(
                f'<text class="{kind}" x="{box.x:.1f}" y="{baseline:.1f}">{escape(line, quote=False)}</text>'
            )
            y += size
    return "".join([*parts, "</g>"])


def sole_text(branch: Branch) -> str | None:
    """The text of a branch that has nothing else, or nothing at all."""
    if not branch.children:
        return ""
    only = branch.children[0]
    return only if len(branch.children) == 1 and isinstance(only, str) else None


def quoted(text: str) -> str:
    """A literal in quotes."""
    return f'"{shown(text, ESCAPES)}"'


def shown(text: str, escapes: dict[str, str] | None = None) -> str:
    """A text in which nothing is invisible but blanks, and which XML can hold."""
    known = escapes or {}
    return "".join(known.get(c) or (c if c.isprintable() else c.encode("unicode_escape").decode()) for c in text)


def cells(text: str) -> int:
    """How many places a text takes in a font whose characters are equally wide."""
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def wrapped(text: str, longest: int, most: int) -> list[str]:
    """Lines of a text, broken at blanks where there are some; the end of a long one is left out."""
    lines: list[str] = []
    start = 0
    while start < len(text):
        if len(lines) == most:
            lines[-1] = lines[-1][: longest - 1] + "…"
            break
        end = start + 1
        while end < len(text) and cells(text[start : end + 1]) <= longest:
            end += 1
        blank = text.rfind(" ", start + longest // 2, end)
        end = blank + 1 if end < len(text) and blank >= 0 else end
        lines.append(text[start:end])
        start = end
    return lines or [""]
