"""Make docs/terminal.svg: a terminal in which real commands run, shown line by line.

The commands are run with the installed package, and what they print is what the picture shows.
Run: python tools/terminal_picture.py.
"""

import html
import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "terminal.svg"
COMMANDS = (
    'fewparse parse calendar "what time does Anna\'s first meeting start on Thursday"',
    'fewparse parse calendar "is there a room for 6 people with video free tomorrow at 2pm"',
    'fewparse parse calendar "Please add Lena to the product sync"',
    'fewparse parse calendar "what\'s the weather in my meeting room"',
)
WIDTH = 98
SECONDS_PER_LINE = 0.5
THEME = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34),
        (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196),
    ],
)  # fmt: skip
"""Background, foreground, and the eight colours."""
APPEARANCE = """
    @media (prefers-reduced-motion: no-preference) {
      text[clip-path] { animation: appear .2s backwards; }
      @keyframes appear { from { opacity: 0; } }
    }
"""


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    for command in COMMANDS:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")), soft_wrap=True)
        console.print(Text.from_ansi(output_of(command)))
    svg = console.export_svg(title="fewparse", theme=THEME, unique_id="terminal")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fonts of the reader, none from elsewhere
    svg = svg.replace("<style>", f"<style>{APPEARANCE}", 1).replace(
        "Fira Code", "ui-monospace, 'DejaVu Sans Mono'"
    )
    PICTURE.write_text(re.sub(r'clip-path="url\(#terminal-line-(\d+)\)"', delayed, svg), encoding="utf-8")
    print(PICTURE)


def output_of(command: str) -> str:
    """Return what a command prints, with its colours; it may end with any exit code of a decision."""
    program, *arguments = shlex.split(command)
    path = Path(sys.executable).with_name(program)
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    done = subprocess.run([path, *arguments], env=env, capture_output=True, text=True)
    if done.stderr:
        sys.exit(done.stderr)
    return done.stdout.rstrip()


def delayed(line: re.Match[str]) -> str:
    """Return the attribute of a line with the time at which it appears."""
    return f'{line[0]} style="animation-delay: {int(line[1]) * SECONDS_PER_LINE:g}s"'


def lines_of(svg: str) -> list[str]:
    """Return the lines of text that a picture shows."""
    lines: dict[int, str] = {}
    for number, text in re.findall(r'clip-path="url\(#terminal-line-(\d+)\)"[^>]*>([^<]*)<', svg):
        lines[int(number)] = lines.get(int(number), "") + html.unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    return [line.rstrip() for _, line in sorted(lines.items())]


if __name__ == "__main__":
    main()
