"""Draw derivation trees: as text for the terminal, or as SVG that is readable on light and dark backgrounds."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from fewparse.errors import LimitExceeded
from fewparse.grammar.analysis.derivation import DerivationTree

MAX_LINE_WIDTH, MAX_LINES = 28, 6
MAX_NOTE_WIDTH, MAX_NOTE_LINES = 34, 3
GAP, LEVEL_GAP, MARGIN, PADDING = 14.0, 30.0, 12.0, 9.0
LINE_HEIGHT, NOTE_LINE_HEIGHT = 17.0, 14.0
CHAR_WIDTH, NOTE_CHAR_WIDTH, LABEL_CHAR_WIDTH, LABEL_CAPITAL_WIDTH = 7.7, 6.8, 7.9, 9.8
MAX_WIDTH = 2_400.0
MAX_INDENTATION = 20_000_000
"""The most characters before the nodes of a tree, over all lines."""
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


def tree_text(tree: DerivationTree) -> str:
    """Draw a tree with box-drawing characters, one line per node or text.

    Raises `LimitExceeded` if the drawing is too large: indentation grows with the square of the depth.
    """
    lines: list[str] = []
    size = 0
    stack: list[tuple[DerivationTree | str, str | None, str, str]] = [(tree, None, "", "")]
    while stack:
        part, parent_translation, first_indent, indent = stack.pop()
        size += len(first_indent)
        if size > MAX_INDENTATION:
            message = f"the tree is too deep to be drawn: it has more than {len(lines):,} lines"
            raise LimitExceeded(message, "Draw the derivation of a shorter text, or as a picture (--svg).")
        if isinstance(part, str):
            lines.append(first_indent + quote(part))
            continue
        line = first_indent + escape_invisible(part.label)
        if (only := only_text(part)) is not None:
            line += " " + quote(only)
        note = part.annotation(parent_translation)
        lines.append(line if note is None else f"{line}  ⇒ {escape_invisible(note)}")
        strokes = ("└─ ", "   ")
        for child in reversed(part.children if only is None else ()):
            stack.append((child, part.translation, indent + strokes[0], indent + strokes[1]))
            strokes = ("├─ ", "│  ")
    return "\n".join(lines)


def tree_svg(tree: DerivationTree) -> str:
    """Draw a tree as an SVG document: parents above their children, the text from left to right."""
    boxes = list(make_boxes(tree))
    width, height = lay_out(boxes)
    scale = min(1.0, MAX_WIDTH / width)
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
    lines += [draw_box(box) for box in boxes]
    return "\n".join([*lines, "</svg>\n"])


@dataclass(slots=True, eq=False)
class Box:
    """A node or a text in the picture.

    `x` is its centre and `y` its top; `left` and `right` bound its subtree, relative to `x`.
    """

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


def make_boxes(tree: DerivationTree) -> Iterator[Box]:
    """Yield a box for each node and each text, parents first."""
    stack: list[tuple[DerivationTree | str, str | None, Box | None]] = [(tree, None, None)]
    while stack:
        part, parent_translation, parent = stack.pop()
        box = make_box(part, parent_translation, 0 if parent is None else parent.level + 1)
        if parent is not None:
            parent.children.append(box)
        if isinstance(part, DerivationTree):
            stack += [(child, part.translation, box) for child in reversed(part.children or ("",))]
        yield box


def make_box(part: DerivationTree | str, parent_translation: str | None, level: int) -> Box:
    """Return the box of a node or text, with wrapped lines and without a position."""
    if isinstance(part, str):
        title, lines, notes = quote(part), wrap(quote(part), MAX_LINE_WIDTH, MAX_LINES), []
        widths = [display_width(line) * CHAR_WIDTH for line in lines]
    else:
        label, note = escape_invisible(part.label), part.annotation(parent_translation)
        title = label if note is None else f"{label} ⇒ {escape_invisible(note)}"
        lines = wrap(label, MAX_LINE_WIDTH, MAX_NOTE_LINES)
        notes = [] if note is None else wrap(escape_invisible(note), MAX_NOTE_WIDTH, MAX_NOTE_LINES)
        widths = [label_width(line) for line in lines]
        widths += [display_width(line) * NOTE_CHAR_WIDTH for line in notes]
    height = LINE_HEIGHT * len(lines) + NOTE_LINE_HEIGHT * len(notes) + PADDING
    kind = "text" if isinstance(part, str) else "name"
    return Box(kind, lines, notes, title, level, max(widths) + 2 * PADDING, height)


def label_width(line: str) -> float:
    """Return the estimated width of a label in its proportional font."""
    return sum(LABEL_CAPITAL_WIDTH if c.isupper() else LABEL_CHAR_WIDTH * display_width(c) for c in line)


def lay_out(boxes: list[Box]) -> tuple[float, float]:
    """Set the position of every box; return the width and height of the picture.

    The subtrees of siblings do not overlap horizontally; a box is centred between its first and its last child.
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


def draw_box(box: Box) -> str:
    """Return the SVG of a box with its lines."""
    parts = [
        f'<g class="{box.kind}"><title>{escape(box.title, quote=False)}</title>',
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="7"/>',
    ]
    y = box.y + PADDING / 2
    for size, kind, lines in ((LINE_HEIGHT, "first", box.lines), (NOTE_LINE_HEIGHT, "note", box.notes)):
        for line in lines:
            baseline = y + size * 0.75
            parts.append(
                f'<text class="{kind}" x="{box.x:.1f}" y="{baseline:.1f}">{escape(line, quote=False)}</text>'
            )
            y += size
    return "".join([*parts, "</g>"])


def only_text(tree: DerivationTree) -> str | None:
    """Return the text of a node that has no child but text, empty if it has none; None for other nodes."""
    if not tree.children:
        return ""
    only = tree.children[0]
    return only if len(tree.children) == 1 and isinstance(only, str) else None


def quote(text: str) -> str:
    """Return a text in quotes, with escapes."""
    return f'"{escape_invisible(text, ESCAPES)}"'


def escape_invisible(text: str, escapes: dict[str, str] | None = None) -> str:
    """Escape characters that are not printable or not valid in XML, and those in `escapes`."""
    known = escapes or {}
    return "".join(known.get(c) or (c if c.isprintable() else c.encode("unicode_escape").decode()) for c in text)


def display_width(text: str) -> int:
    """Return the number of columns of a text in a monospaced font; wide characters take two."""
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def wrap(text: str, max_width: int, max_lines: int) -> list[str]:
    """Break a text into lines, at blanks where possible; beyond the last line it is cut off with an ellipsis."""
    lines: list[str] = []
    start = 0
    while start < len(text):
        if len(lines) == max_lines:
            lines[-1] = lines[-1][: max_width - 1] + "…"
            break
        end = start + 1
        while end < len(text) and display_width(text[start : end + 1]) <= max_width:
            end += 1
        blank = text.rfind(" ", start + max_width // 2, end)
        end = blank + 1 if end < len(text) and blank >= 0 else end
        lines.append(text[start:end])
        start = end
    return lines or [""]
