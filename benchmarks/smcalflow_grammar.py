"""SMCalFlow's grammar: how much of the data it says, and how fast it translates and constrains the 200 test turns.

Run: python benchmarks/smcalflow_grammar.py, where the data is at hand. The tokens are those of the embedded model.
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
    """Rows of translation, of all turns and of the test turns, then rows of masks; times are in microseconds."""
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
    """A row for the way there and one for each scorer's way back: how many turns are right, and the times.

    Each program is translated once, but counts as often as it was said.
    """
    plain, learned = domain.translator, domain.scored_translator("learned")
    assert plain is not None
    assert learned is not None
    programs = list(turns)
    warm_up(plain, programs[:WARM_UP])
    seconds, said = timed(plain.to_utterance, programs)
    utterances = {program: u for program, u in zip(programs, said, strict=True) if u is not None}
    right = sum(turns[program] for program in utterances)
    yield row(f"{name}, program to utterance", right, turns.total(), seconds)
    for scorer, translator in (("shortest", plain), ("learned", learned)):
        seconds, back = timed(translator.to_program, list(utterances.values()))
        answers = zip(utterances, back, strict=True)
        right = sum(turns[program] for program, answer in answers if is_same(program, answer))
        yield row(f"{name}, utterance to program, {scorer}", right, turns.total(), seconds)


def warm_up(translator: Translator, programs: Sequence[str]) -> None:
    """Translate both ways: the automaton learns the grammar."""
    for program in programs:
        translator.to_program(translator.to_utterance(program).best or "")


def is_same(program: str, answer: str | None) -> bool:
    """Whether what came back is the program."""
    return answer is not None and normal_form(answer) == normal_form(program)


def masks(domain: Domain, model: LanguageModel) -> Iterator[dict[str, object]]:
    """A row a constraint: how many of the right outputs it allows, and the masks on the way."""
    free = with_overrides(domain, None, None, copy=False)
    makers: Mapping[str, tuple[Domain, Target]] = {
        "masks, programs": (free, "program"),
        "masks, programs, copied text": (domain, "program"),
        "masks, utterances": (free, "canonical"),
        "masks, utterances, copied text": (domain, "canonical"),
        "masks, programs, induced grammar": (with_overrides(domain, "induced", None, copy=False), "program"),
    }
    compiled(free, model, "program", "")  # makes the engine's form of the vocabulary, once a process
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
    """A constraint, and the seconds that it takes to make it."""
    assert model.vocabulary is not None
    _ = domain.side(target)  # reads the grammar, once a domain
    begin = time.perf_counter()
    constraint = domain.constraint(model.vocabulary, target, utterance)
    return constraint, time.perf_counter() - begin


def walk(constraint: Constraint, tokens: Sequence[bytes]) -> tuple[list[float], bool]:
    """Seconds of the masks along an output, as far as it is allowed, and whether it is to its end."""
    state, seconds = constraint.start(), []
    for token in tokens:
        begin = time.perf_counter()
        state.mask()
        seconds.append(time.perf_counter() - begin)
        following = state.advance(token)
        if following is None:
            return seconds, False
        state = following
    return seconds, state.may_end


def row(
    name: str, right: int, total: int, seconds: Sequence[float], compiling: Sequence[float] = ()
) -> dict[str, object]:
    """The figures of one measurement."""
    return {
        "measured": name,
        "turns": total,
        "right": right,
        "share": f"{right / total:.4f}",
        "mean µs": round(statistics.fmean(seconds) * 1e6, 1),
        "p50 µs": round(statistics.median(seconds) * 1e6, 1),
        "p95 µs": round(statistics.quantiles(seconds, n=20)[18] * 1e6, 1),
        "max µs": round(max(seconds) * 1e6, 1),
        "compile ms (mean)": round(statistics.fmean(compiling) * 1e3, 1) if compiling else "",
    }


if __name__ == "__main__":
    main()
