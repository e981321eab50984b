"""Measure the SMCalFlow grammar: its coverage of the data, and the speed of translation and of constraints.

Run: python benchmarks/smcalflow_grammar.py; needs the data. The tokens are those of the embedded model.
"""

import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fewparse import Domain, LanguageModel, load_domain, open_model
from fewparse.constrain.state import Constraint
from fewparse.datasets.smcalflow.dataset import SMCALFLOW
from fewparse.datasets.smcalflow.lispress import normal_form
from fewparse.domains.load import with_overrides
from fewparse.evaluate.gold_coverage import gold_output
from fewparse.example import Target
from fewparse.grammar.translation.translator import Translator
from measure import write
from translation import DATA, open_lines, timed

WARM_UP = 100


def main() -> None:
    """Write rows for translation, of all turns and of the test turns, then rows for masks."""
    if not DATA.exists():
        raise SystemExit(f"the data is not at {DATA}")
    everything = Counter(str(json.loads(line)["program"]) for line in open_lines("dev_all.jsonl.gz"))
    with tempfile.TemporaryDirectory() as folder:
        SMCALFLOW.import_from(DATA, Path(folder))
        domain = load_domain("smcalflow", Path(folder))
        test = Counter(example.program for example in domain.test_examples)
        model = open_model()
        rows = [
            *translations("all turns", domain, everything),
            *translations("test turns", domain, test),
            *masks(domain, model),
        ]
        model.close()
    write("smcalflow-grammar", rows)


def translations(name: str, domain: Domain, turns: Counter[str]) -> Iterator[dict[str, object]]:
    """Yield a row for programs to utterances, and one per scorer for utterances to programs.

    Each distinct program is translated once, but counts as often as it occurs.
    """
    plain, learned = domain.translator, domain.scored_translator("learned")
    assert plain is not None
    assert learned is not None
    programs = list(turns)
    warm_up(plain, programs[:WARM_UP])
    seconds, translated = timed(plain.to_utterance, programs)
    utterances = {program: u for program, u in zip(programs, translated, strict=True) if u is not None}
    correct = sum(turns[program] for program in utterances)
    yield row(f"{name}, program to utterance", correct, turns.total(), seconds)
    for scorer, translator in (("shortest", plain), ("learned", learned)):
        seconds, programs_back = timed(translator.to_program, list(utterances.values()))
        pairs = zip(utterances, programs_back, strict=True)
        correct = sum(turns[program] for program, translated in pairs if is_same(program, translated))
        yield row(f"{name}, utterance to program, {scorer}", correct, turns.total(), seconds)


def warm_up(translator: Translator, programs: Sequence[str]) -> None:
    """Translate both ways, to fill the automaton's cache."""
    for program in programs:
        translator.to_program(translator.to_utterance(program).best or "")


def is_same(program: str, translated: str | None) -> bool:
    """Return whether two programs have the same normal form."""
    return translated is not None and normal_form(translated) == normal_form(program)


def masks(domain: Domain, model: LanguageModel) -> Iterator[dict[str, object]]:
    """Yield a row per constraint: how many gold outputs it accepts, and the time of their masks."""
    free = with_overrides(domain, None, None, copy=False)
    makers: Mapping[str, tuple[Domain, Target]] = {
        "masks, programs": (free, "program"),
        "masks, programs, copied text": (domain, "program"),
        "masks, utterances": (free, "canonical"),
        "masks, utterances, copied text": (domain, "canonical"),
        "masks, programs, induced grammar": (with_overrides(domain, "induced", None, copy=False), "program"),
    }
    compiled(free, model, "program", "")  # converts the vocabulary for the engine, once per process
    for name, (constrained, target) in makers.items():
        compiling, masking, allowed = [], [], 0
        fixed = not constrained.constraint_kind.depends_on_utterance
        shared = compiled(constrained, model, target, "") if fixed else None
        for example in domain.test_examples:
            constraint, seconds = shared or compiled(constrained, model, target, example.utterance)
            compiling.append(seconds)
            output = gold_output(domain, example, target)
            assert output is not None
            times, is_allowed = walk(constraint, [token.bytes for token in model.tokenize(output)])
            masking += times
            allowed += is_allowed
        yield row(name, allowed, len(domain.test_examples), masking, compiling)


def compiled(domain: Domain, model: LanguageModel, target: Target, utterance: str) -> tuple[Constraint, float]:
    """Return a constraint and the seconds to compile it."""
    assert model.vocabulary is not None
    _ = domain.side(target)  # reads the grammar, once per domain
    start = time.perf_counter()
    constraint = domain.constraint(model.vocabulary, target, utterance)
    return constraint, time.perf_counter() - start


def walk(constraint: Constraint, tokens: Sequence[bytes]) -> tuple[list[float], bool]:
    """Return the seconds of the masks along an output, as far as it is accepted, and whether all of it is."""
    state, seconds = constraint.start(), []
    for token in tokens:
        start = time.perf_counter()
        state.mask()
        seconds.append(time.perf_counter() - start)
        next_state = state.advance(token)
        if next_state is None:
            return seconds, False
        state = next_state
    return seconds, state.may_end


def row(
    name: str, correct: int, total: int, seconds: Sequence[float], compiling: Sequence[float] = ()
) -> dict[str, object]:
    """Return the figures of one measurement."""
    return {
        "measurement": name,
        "turns": total,
        "correct": correct,
        "share": f"{correct / total:.4f}",
        "mean µs": round(statistics.fmean(seconds) * 1e6, 1),
        "p50 µs": round(statistics.median(seconds) * 1e6, 1),
        "p95 µs": round(statistics.quantiles(seconds, n=20)[18] * 1e6, 1),
        "max µs": round(max(seconds) * 1e6, 1),
        "compile ms (mean)": round(statistics.fmean(compiling) * 1e3, 1) if compiling else "",
    }


if __name__ == "__main__":
    main()
