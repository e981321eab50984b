"""Measure translation both ways with a grammar of about 1,000 rules: SMCalFlow's type tables and literal rules.

Run: python benchmarks/translation.py; needs the data. Lark's Earley parser parses the same programs with the same
rules in the same run, for comparison.
"""

import gzip
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lark import Lark

from fewparse.grammar.export.notations import to_lark
from fewparse.grammar.readers.load import folder_sources
from fewparse.grammar.readers.scfg import read_scfg
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.translator import Translation, Translator
from measure import write

DATA = Path(__file__).parents[2] / "shared" / "data" / "smcalflow"
LITERALS = Path(__file__).parent / "smcalflow" / "literals.scfg"
PROGRAMS = 600
LARK_PROGRAMS = 20


def main() -> None:
    """Write one row per direction and scorer: milliseconds per text, and the share of exact round trips."""
    if not DATA.exists():
        raise SystemExit(f"the data is not at {DATA}")
    grammar = read_grammar()
    translator = Translator(grammar)
    programs = distinct_programs()
    learned = translator.with_learned_scorer(
        f" {json.loads(line)['program']}" for line in open_lines("train_300.jsonl")
    )
    for program in programs[:100]:  # fills the automaton's cache
        translator.to_program(translator.to_utterance(program).best or "")
    rows = []
    to_utterance, utterances = timed(translator.to_utterance, programs)
    rows.append(row("program to utterance", to_utterance, 0, len(programs)))
    pairs = [(program, utterance) for program, utterance in zip(programs, utterances, strict=True) if utterance]
    for name, chosen in (("shortest", translator), ("learned", learned)):
        seconds, back = timed(chosen.to_program, [utterance for _, utterance in pairs])
        same = sum(program == translated for (program, _), translated in zip(pairs, back, strict=True))
        rows.append(row(f"utterance to program, {name}", seconds, same, len(pairs)))
    rows.append(row("program read by Lark", lark_seconds(grammar, programs[:LARK_PROGRAMS]), 0, LARK_PROGRAMS))
    write("translation", rows)


def read_grammar() -> SynchronousGrammar:
    """Read the induced rules and the literal rules."""
    sources = folder_sources(DATA / "released-grammar")
    return read_scfg([*sources, (LITERALS.name, LITERALS.read_text(encoding="utf-8"))])


def distinct_programs() -> list[str]:
    """Return a random sample of programs; every text of this grammar starts with a space."""
    programs = {f" {json.loads(line)['program']}" for line in open_lines("dev_all.jsonl.gz")}
    return random.Random(0).sample(sorted(programs), PROGRAMS)


def open_lines(name: str) -> list[str]:
    """Return the lines of a data file."""
    raw = (DATA / name).read_bytes()
    return (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8").splitlines()


def timed(translate: Callable[[str], Translation], texts: Sequence[str]) -> tuple[list[float], list[str | None]]:
    """Return the seconds and the best translation of each text."""
    seconds, translations = [], []
    for text in texts:
        start = time.perf_counter()
        translations.append(translate(text).best)
        seconds.append(time.perf_counter() - start)
    return seconds, translations


def lark_seconds(grammar: SynchronousGrammar, programs: Sequence[str]) -> list[float]:
    """Return the seconds that Lark takes to parse each program."""
    parser = Lark(to_lark(grammar.side("program")), parser="earley", lexer="dynamic_complete", ambiguity="forest")
    seconds = []
    for program in programs:
        start = time.perf_counter()
        parser.parse(program)
        seconds.append(time.perf_counter() - start)
    return seconds


def row(name: str, seconds: Sequence[float], same: int, total: int) -> dict[str, object]:
    """Return the figures of one direction."""
    cuts = statistics.quantiles(seconds, n=20)
    return {
        "direction": name,
        "texts": total,
        "mean ms": round(statistics.fmean(seconds) * 1e3, 2),
        "p50 ms": round(statistics.median(seconds) * 1e3, 2),
        "p95 ms": round(cuts[18] * 1e3, 2),
        "max ms": round(max(seconds) * 1e3, 1),
        "round trip": f"{same / total:.3f}" if same else "",
    }


if __name__ == "__main__":
    main()
