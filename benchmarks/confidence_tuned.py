"""Calibration of tuned models on Overnight and SMCalFlow, one adapter for each domain. Used by confidence.py.

The embedded model is tuned on a part of the training examples. Other training examples are parsed, the confidence
is fitted on them, and measured on the test set, with the settings of the domain. Adapters are tuned like those of
`benchmarks/tuning.py`. They and all parses are kept: an interrupted run is resumed, in the middle of an epoch too.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from confidence_figures import RECORDS, RISKS, Pairs, figures_on, mean_errors, pairs_of
from fewparse import Domain, Example, LanguageModel, Record, load_domain
from fewparse.calibrate.calibration import HELD_OUT, cases_of
from fewparse.calibrate.fit import fit
from fewparse.calibrate.folds import Fold, tuned_adapter
from fewparse.confidence.assess import made_for
from fewparse.errors import CalibrationError
from fewparse.evaluate.calibration import rounded
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import parser_systems, run_evaluation
from fewparse.lm.load import with_adapter
from fewparse.options import Options, ParserOptions
from fewparse.tune.config import TuneConfig
from measure import RESULTS

ADAPTERS = RESULTS / "confidence-adapters"
MAX_DECLINED = 0.02


@dataclass(frozen=True)
class Sizes:
    """How many training examples an adapter learns, how many others are parsed for the fit, and test items."""

    tuned: int
    fitted: int
    test: int
    epochs: int = 8

    def limited(self, limit: int | None) -> "Sizes":
        """Return sizes for a trial with this many test items: an adapter of one epoch on a few examples."""
        if limit is None:
            return self
        return Sizes(min(self.tuned, 40), min(self.fitted, 60), min(self.test, limit), 1)


OVERNIGHT = Sizes(tuned=200, fitted=160, test=160)
SMCALFLOW = Sizes(tuned=200, fitted=100, test=200)


class Measured(NamedTuple):
    """The figures of a domain, and the confidences of its test items of each kind with whether they are right."""

    figures: dict[str, Any]
    pairs: Mapping[str, Pairs]


def measure_all(
    names: Sequence[str], model: LanguageModel, sizes: Sizes, plots: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of each domain as they come, then their means."""
    measured = []
    for name in names:
        start = time.process_time()
        try:
            measured.append(measure(name, model, sizes, plots))
        except CalibrationError as error:
            print(f"{name}: {error.message}", flush=True)
            continue
        print(f"{name}: {(time.process_time() - start) / 60:.1f} CPU minutes", flush=True)
        yield name, measured[-1].figures
    if len(measured) > 1:
        yield "mean", means(measured)


def means(measured: Sequence[Measured]) -> dict[str, Any]:
    """Return mean figures: calibration errors, and what is executed at some risks."""
    executed = {}
    for risk in RISKS:
        found = [each.figures[f"at risk {risk}"]["decisions"]["execute"] for each in measured]
        right = sum(each["accuracy"]["value"] * each["items"] for each in found if each["items"])
        items = sum(each["items"] for each in found)
        executed[str(risk)] = {
            "coverage": rounded(sum(each["coverage"] for each in found) / len(found)),
            "risk": rounded(1 - right / items) if items else None,
        }
    return {
        "domains": len(measured),
        "confidences": mean_errors([e.pairs for e in measured]),
        "executed": executed,
    }


def measure(name: str, model: LanguageModel, sizes: Sizes, plots: bool) -> Measured:
    """Tune, parse for the fit, fit, parse test items; raise `CalibrationError` for too little to fit on."""
    domain = load_domain(name).for_target("canonical")
    pool, others = domain.examples, domain.spare_examples
    if len(pool) > sizes.tuned:
        shuffled = drawn(pool, len(pool))
        pool, others = shuffled[: sizes.tuned], (*shuffled[sizes.tuned :], *others)
    small, items = domain.with_examples(pool, 0), drawn(others, sizes.fitted)
    config = TuneConfig(held_out=0.0, epochs=sizes.epochs)
    adapter = tuned_adapter(Fold(0, items, small), "canonical", model, config, ADAPTERS, show)
    given: ParserOptions = {"target": "canonical", "adapter": adapter.path}
    cases = cases_of(parsed(small, model, given, items, HELD_OUT))
    options = Options.resolve(small, model.name, **given)
    made = made_for(small, with_adapter(model, adapter), options)
    method = f"{len(items)} training examples that the adapter has not learned"
    calibration = fit(cases, made, method, small.data_sha256("canonical"), MAX_DECLINED)
    test = parsed(small, model, given, drawn(domain.test_examples, sizes.test), "test")
    found = figures_on(small, "canonical", calibration, test, plot_risk=0.1 if plots else None)
    return Measured({"tuned_on": len(small.examples), **found}, pairs_of(calibration, test))


def drawn(items: Sequence[Example], number: int) -> tuple[Example, ...]:
    """Return items at random, always the same ones."""
    order = np.random.default_rng(0).permutation(len(items))[:number]
    return tuple(items[int(i)] for i in order)


def parsed(
    domain: Domain, model: LanguageModel, given: ParserOptions, items: Sequence[Example], split: str
) -> list[Record]:
    """Parse items with their features, or find them in the records."""
    systems = parser_systems(domain, model, {domain.name: given}, features=True)
    return run_evaluation(domain, systems, items, split, Records(RECORDS))[0].records


def show(text: str) -> None:
    """Print what is done."""
    print(text, flush=True)
