"""What confidence costs: the same parses with it and without, alternating. Used by confidence.py."""

import time
from statistics import mean
from typing import Any

import numpy as np

from fewparse import Domain, LanguageModel
from fewparse.evaluate.calibration import rounded
from fewparse.options import Options
from fewparse.parser import Parser

REPEATS = 2


def speed(domain: Domain, model: LanguageModel, number: int) -> dict[str, Any]:
    """Return the processor time of parses with confidence, relative to those without.

    Both parsers share the model and its cache. Each item is parsed once before it is timed, then by both in turn;
    the first of the two alternates. Processor time of this thread and those of the model is measured, because
    other processes may take the machine meanwhile.
    """
    target = domain.table.target
    targeted = domain.for_target(target)
    options = Options.resolve(targeted, model.name)
    parsers = {"with": Parser(targeted, model, options), "without": Parser(targeted, model, options)}
    parsers["without"].assessor.calibration = None
    assert parsers["with"].assessor.calibration is not None, "the domain is not calibrated"
    step = max(1, len(domain.examples) // number)
    items = domain.examples[::step][:number]
    for parser in parsers.values():
        parser.parse(items[0].utterance)  # starts the executor, estimates the alignment
    seconds: dict[str, list[float]] = {name: [] for name in (*parsers, "assessment")}
    for i, item in enumerate(items):
        of_item: dict[str, list[float]] = {name: [] for name in parsers}
        for repeat in range(REPEATS):
            for name in sorted(parsers, reverse=(i + repeat) % 2 == 0):
                start = time.process_time()
                parsers[name].parse(item.utterance)
                of_item[name].append(time.process_time() - start)
        for name in parsers:
            seconds[name].append(min(of_item[name]))
        seconds["assessment"].append(assessment(parsers["with"], item.utterance))
    with_it, without = np.array(seconds["with"]), np.array(seconds["without"])
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(items), (2000, len(items)))
    ratios = np.sort(with_it[drawn].sum(1) / without[drawn].sum(1))
    return {
        "items": len(items),
        "seconds_without": rounded(float(without.mean())),
        "seconds_with": rounded(float(with_it.mean())),
        "ratio": rounded(float(with_it.sum() / without.sum())),
        "ratio_interval": [rounded(float(ratios[50])), rounded(float(ratios[1949]))],
        "assessment_milliseconds": rounded(1000 * mean(seconds["assessment"])),
        "assessment_share": rounded(mean(seconds["assessment"]) / float(without.mean())),
    }


def assessment(parser: Parser, utterance: str) -> float:
    """Return the seconds that features, confidence and decision of a parse take, with all executions."""
    parse = parser.parse(utterance)
    start = time.process_time()
    for _ in range(REPEATS):
        parser.assessor.assess(utterance, parse.candidates, parse.trace)
    return (time.process_time() - start) / REPEATS
