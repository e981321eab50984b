"""Mutated grammar files are read as a grammar or rejected with a message, within seconds."""

import random
import time
from pathlib import Path

from fewparse.errors import FewparseError
from fewparse.grammar.readers.load import load_grammar
from support.campaign import sizes
from support.sample_grammars import SAMPLES

SECONDS = 30
SCFG = r"""start -> greeting | list , program
greeting -> "hello " name? who , "(greet " who ")"
who -> /[a-z]/ who , /[a-z]/ who
who -> #e , #e
name 1> "dear " | #e
list -> "list " who , twice(who)
program -> who
twice(x) 2> "(" x " " x ")"
"""
TYPES = 'f,Result,"x: Type, y: Other"\nTyped,Result,a,Type\n"g[T]",Other\nRecord,Record,"field: Type"\n'
TEMPLATES = 'f,"do $x with $y"\nTyped,"the ""typed"" $a"\nRecord,a record," with $field"\n'
PIECES = (
    *(
        '"',
        "/",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "{9999}",
        "{0,9999}",
        "*",
        "+",
        "?",
        "~",
        "~1..99999",
        "|",
        ",",
        ":",
    ),
    *(
        "->",
        "1>",
        "2>",
        "#e",
        "start",
        "\\",
        "\\u0000",
        "\\ud800",
        "\0",
        "\ufeff",
        "\u2028",
        "\r",
        "\n",
        "\t",
        " ",
    ),
    *(
        "%ignore",
        "//",
        "#",
        "$x",
        '""',
        "\U0010ffff",
        "i",
        "(?R)",
        "(?=a)",
        "\\p{L}",
        "[^\\W]",
        "9" * 5000,
        "x(" * 500,
    ),
)


def mutated(text: str, rng: random.Random) -> str:
    """Apply a few random changes: insert, delete, repeat, replace or exchange parts."""
    for _ in range(rng.randint(1, 6)):
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + rng.choice((1, 3, 20)))
        part = rng.choice(
            (
                "",
                rng.choice(PIECES),
                text[start:end] + rng.choice(PIECES),
                text[start:end] * rng.choice((2, 50, 2000)),
                rng.choice(PIECES) * rng.choice((1, 3, 3000)),
                text[start:end][::-1],
            )
        )
        text = text[:start] + part + text[end:]
    return text


def read(path: Path) -> None:
    """Load a grammar; only errors with a message for the user are expected."""
    start = time.monotonic()
    try:
        load_grammar(path)
    except FewparseError as error:
        assert error.message  # noqa: PT017
    assert time.monotonic() - start < SECONDS


@sizes("count", default=150, campaign=20_000)
def test_a_mutated_lark_grammar_is_read_or_rejected(count: int, tmp_path: Path) -> None:
    sources = list(SAMPLES.values())
    for seed in range(count):
        rng = random.Random(seed)
        path = tmp_path / "grammar.lark"
        path.write_bytes(mutated(rng.choice(sources), rng).encode(errors="surrogatepass"))
        read(path)


@sizes("count", default=150, campaign=20_000)
def test_a_mutated_synchronous_grammar_is_read_or_rejected(count: int, tmp_path: Path) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        path = tmp_path / "grammar.scfg"
        path.write_bytes(mutated(SCFG, rng).encode(errors="surrogatepass"))
        read(path)


@sizes("count", default=150, campaign=20_000)
def test_mutated_type_tables_are_read_or_rejected(count: int, tmp_path: Path) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        files = {"start.scfg": SCFG, "types.csv": TYPES, "templates.csv": TEMPLATES}
        changed = rng.choice(sorted(files))
        for name, text in files.items():
            content = mutated(text, rng) if name == changed else text
            (tmp_path / name).write_bytes(content.encode(errors="surrogatepass"))
        read(tmp_path)
