"""How good are confidences, decisions and questions, and do reviewed utterances help more than random ones?

Run: python benchmarks/confidence.py test [DOMAIN ...] or python benchmarks/confidence.py review [DOMAIN ...]; the
default is the calendar. `test` needs a calibration of each domain (fewparse calibrate DOMAIN; the domains of
Overnight and SMCalFlow must be tuned before). Parses are kept in benchmarks/results/confidence-records.jsonl: the
same command resumes an interrupted run.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fewparse import Candidate, Domain, Example, LanguageModel, Record, load_domain, open_model
from fewparse.calibrate.fit import Case, fit
from fewparse.confidence.assess import find_calibration, made_for
from fewparse.confidence.calibration import Calibration
from fewparse.confidence.feedback import FeedbackEntry, LoggedCandidate
from fewparse.confidence.question import question_about
from fewparse.confidence.readings import readings_of
from fewparse.confidence.review import to_review
from fewparse.domains.examples import OUT_OF_SCOPE_TEST
from fewparse.evaluate.calibration import (
    area_under_risk,
    bins_of,
    bootstrap,
    brier,
    calibration_error,
    figures,
    judge_records,
    rounded,
)
from fewparse.evaluate.calibration_plots import write_plots
from fewparse.evaluate.metrics import count
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import share
from fewparse.evaluate.run import TRAIN, parser_systems, run_evaluation
from fewparse.lm.load import with_adapter
from fewparse.options import NO_ADAPTER, Options, ParserOptions
from measure import RESULTS

RECORDS = RESULTS / "confidence-records.jsonl"
FIGURES = RESULTS / "confidence.json"
RISKS = (0.02, 0.05, 0.1, 0.2)
POOL, LOGGED, ADDED = 60, 100, 50
PROMPTED: ParserOptions = {"adapter": NO_ADAPTER, "decoder": "greedy", "examples": 5}
Pairs = Sequence[tuple[float, bool]]


def main(task: str, names: Sequence[str]) -> None:
    """Run a task on domains and store its figures."""
    model = open_model()
    for name in names or ("calendar",):
        found = TASKS[task](load_domain(name), model)
        stored = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        stored.setdefault(task, {})[name] = found
        FIGURES.write_text(json.dumps(stored, indent=1) + "\n")
        print(json.dumps(found, indent=1))


def parsed(
    domain: Domain, model: LanguageModel, items: Sequence[Example], split: str, given: ParserOptions
) -> list[Record]:
    """Parse items with their features, or find them in the records."""
    systems = parser_systems(domain, model, {domain.name: given}, features=True)
    return run_evaluation(domain, systems, items, split, Records(RECORDS))[0].records


def test(domain: Domain, model: LanguageModel) -> dict[str, Any]:
    """Return the figures on the test set, beside the baselines, and those of simulated confirmation."""
    target = domain.table.target
    domain = domain.for_target(target)
    options = Options.resolve(domain, model.name)
    calibration, note = find_calibration(domain, with_adapter(model, options.adapter), options)
    if calibration is None:
        sys.exit(note or f"{domain.name} is not calibrated: fewparse calibrate {domain.name}")
    records = parsed(domain, model, domain.test_examples, "test", {})
    outside = parsed(domain, model, domain.out_of_scope(OUT_OF_SCOPE_TEST), "out of scope", {})
    found: dict[str, Any] = {"fitted_on": calibration.origin.model_dump()}
    for risk in RISKS:
        of_test = judge_records(calibration, records, risk)
        found[f"at risk {risk}"] = figures(of_test, judge_records(calibration, outside, risk, False), risk)
    write_plots_of(domain, found["at risk 0.05"])
    found["confidences"] = {
        name: confidence_figures([(of(record), record.correct_within(1)) for record in records])
        for name, of in confidences(calibration).items()
    }
    found["confirmation"] = {str(risk): confirmation(domain, calibration, records, risk) for risk in RISKS}
    return found


def write_plots_of(domain: Domain, found: Mapping[str, Any]) -> None:
    """Write the reliability diagram and the risk-coverage plot."""
    folder = RESULTS / "confidence" / domain.name.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    write_plots(folder, dict(found))


def confidences(calibration: Calibration) -> dict[str, Callable[[Record], float]]:
    """Return the confidence and the baselines, each a function of a record."""

    def calibrated(record: Record) -> float:
        estimate = calibration.estimate(record.features or {})
        return 0.0 if estimate is None else estimate.confidence

    return {
        "calibrated": calibrated,
        "sequence probability": lambda record: math.exp((record.features or {}).get("logprob", -math.inf)),
        "minimum token probability": lambda record: math.exp(
            (record.features or {}).get("least_token", -math.inf)
        ),
    }


def confidence_figures(pairs: Pairs) -> dict[str, Any]:
    """Return the calibration error with its interval, and other figures, of one kind of confidence."""
    return {
        "ece": rounded(calibration_error(pairs)),
        "ece_interval": [rounded(end) for end in bootstrap(pairs)],
        "expected_if_calibrated": rounded(expected_error([confidence for confidence, _ in pairs])),
        "brier": rounded(brier(pairs)),
        "area_under_risk": rounded(area_under_risk(pairs)),
        "bins": len(bins_of(pairs)),
    }


def expected_error(confidences: Sequence[float], samples: int = 500) -> float:
    """Return the mean calibration error that perfect confidences of these values would have on so few items."""
    random = np.random.default_rng(0)
    drawn = random.random((samples, len(confidences))) < np.array(confidences)
    return float(
        np.mean([calibration_error(list(zip(confidences, map(bool, row), strict=True))) for row in drawn])
    )


def confirmation(
    domain: Domain, calibration: Calibration, records: Sequence[Record], risk: float
) -> dict[str, Any]:
    """Return what is executed if a user answers the questions rightly, beside the best threshold of its coverage.

    The user confirms a reading if and only if it is right. Both the share of executed utterances and that of wrong
    ones among them are given.
    """
    judged = judge_records(calibration, records, risk)
    executed, asked = [], 0
    for record, item in zip(records, judged, strict=True):
        if item.decision == "execute":
            executed.append(item.right)
        elif item.decision == "confirm":
            asked += 1
            candidates = candidates_of(record)
            readings = readings_of(candidates, domain.execute if domain.executes else None)
            choices = question_about(domain, domain.table.target, candidates, readings).choices
            if any(record.correct[choice.candidate] for choice in choices):
                executed.append(True)
    ranked = sorted(((item.confidence, item.right) for item in judged), reverse=True)[: len(executed)]
    return {
        "questions": asked,
        "coverage": rounded(len(executed) / len(records)),
        "risk": share(count([not right for right in executed])),
        "risk_of_threshold": share(count([not right for _, right in ranked])),
    }


def candidates_of(record: Record) -> list[Candidate]:
    """Return the candidates of a record."""
    values = zip(record.outputs, record.scores, record.programs, record.model_scores, strict=True)
    return [Candidate(text, score, program, model_score) for text, score, program, model_score in values]


def review(domain: Domain, model: LanguageModel) -> dict[str, Any]:
    """Return the accuracy of a prompted model with few examples, and with reviewed or random ones besides.

    Of the training examples, the first in a random order are the pool, the next are what users said; the reviewer
    knows their programs. The confidence is calibrated on the pool alone.
    """
    target = domain.table.target
    domain = domain.for_target(target)
    order = np.random.default_rng(0).permutation(len(domain.examples))
    shuffled = [domain.examples[int(i)] for i in order]
    small = replace(domain, examples=tuple(shuffled[:POOL]))
    said = shuffled[POOL : POOL + LOGGED]
    options = Options.resolve(small, model.name, **PROMPTED)
    of_pool = parsed(small, model, small.examples, TRAIN, PROMPTED)
    cases = [Case(record.features, record.correct_within(1)) for record in of_pool if record.features is not None]
    calibration = fit(cases, made_for(small, model, options), "pool", "", 0.02)
    records = parsed(small, model, said, "said", PROMPTED)
    entries = [entry_of(i, said[i], record, calibration) for i, record in enumerate(records)]
    reviewed = [said[entry.id] for entry in to_review(entries, everything=True)[:ADDED]]
    chosen = np.random.default_rng(1).permutation(LOGGED)[:ADDED]
    added = {"neither": [], "reviewed": reviewed, "random": [said[int(i)] for i in chosen]}
    right = {}
    for name, examples in added.items():
        larger = replace(small, examples=(*small.examples, *examples))
        found = parsed(larger, model, domain.test_examples, "test", PROMPTED)
        right[name] = [record.correct_within(1) for record in found]
    return {
        "pool": POOL,
        "logged": LOGGED,
        "added": ADDED,
        "wrong_among_reviewed": sum(not records[said.index(e)].correct_within(1) for e in reviewed),
        "wrong_among_random": sum(not records[int(i)].correct_within(1) for i in chosen),
        "accuracy": {name: share(count(flags)) for name, flags in right.items()},
    }


def entry_of(number: int, item: Example, record: Record, calibration: Calibration) -> FeedbackEntry:
    """Return a parse as an entry of the feedback log about which the user has said nothing."""
    estimate = calibration.estimate(record.features or {})
    return FeedbackEntry(
        id=number,
        time="",
        utterance=item.utterance,
        context=item.context,
        target="program",
        model="",
        version="",
        candidates=tuple(LoggedCandidate(c.text, c.program, c.score) for c in candidates_of(record)),
        confidence=0.0 if estimate is None else estimate.confidence,
        decision="confirm",
        outcome=None,
        program=None,
        reviewed=False,
    )


TASKS: dict[str, Callable[[Domain, LanguageModel], dict[str, Any]]] = {"test": test, "review": review}

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in TASKS:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
