"""Do 50 reviewed utterances raise accuracy more than 50 random ones? Used by confidence.py.

Of the training examples of a domain, in a random order, the first are the pool and the next are what users say.
The confidence is calibrated on the pool alone. A review takes the utterances in the order of `fewparse feedback
review`; the reviewer knows their programs. Reviewed and random utterances are compared on the same test items,
each time added to the pool of two learners, which profit at once:

- the embedded model, prompted with the nearest examples, greedy
- no model: the output that word alignment, estimated from the pool, prefers. It takes milliseconds, so it runs on
  more seeds, domains and test items.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from fewparse import Candidate, Domain, Example, LanguageModel, Record, load_domain
from fewparse.calibrate.calibration import cases_of
from fewparse.calibrate.fit import fit
from fewparse.confidence.calibration import Calibration, Made
from fewparse.confidence.features import FeatureExtractor
from fewparse.confidence.feedback import FeedbackEntry, LoggedCandidate
from fewparse.confidence.readings import readings_of
from fewparse.confidence.review import to_review
from fewparse.evaluate.baselines import MAX_CANDIDATES, AlignmentRetriever
from fewparse.evaluate.calibration import rounded
from fewparse.evaluate.confirmation import candidates_of
from fewparse.evaluate.metrics import Paired, pair
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import TRAIN, parser_systems, run_evaluation
from fewparse.evaluate.system import Prediction, System
from fewparse.lm.usage import Usage
from fewparse.options import NO_ADAPTER, ParserOptions
from fewparse.rerank import alignment_of
from measure import RESULTS

POOL, LOGGED, ADDED = 60, 150, 50
PROMPTED: ParserOptions = {"adapter": NO_ADAPTER, "decoder": "greedy", "examples": 4}
MADE = Made(target="canonical", model="", identity="", grammar="", decoder={})
Learner = Callable[[Domain], System]


class AlignmentSystem:
    """Predicts the outputs of the domain that word alignment, estimated from its examples, prefers."""

    name, max_concurrency = "word alignment", None

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._known = domain.known_outputs
        self._extractor = FeatureExtractor(domain, "canonical")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The domain and its examples."""
        return {"name": self.name, "domain": self._domain.name, "examples": self._domain.data_sha256("canonical")}

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Return the best outputs, and the features of the first."""
        excluded = {example.key for example in without}
        used = [example for example in self._domain.examples if example.key not in excluded]
        alignment = alignment_of(tuple((e.utterance, e.output("canonical")) for e in used))
        ranked = AlignmentRetriever([e.output("canonical") for e in self._known], alignment).rank(
            item.utterance, Usage()
        )
        candidates = []
        for known in (self._known[i] for i in ranked[:MAX_CANDIDATES]):
            score = alignment.score(item.utterance, known.output("canonical"))
            candidates.append(Candidate(known.output("canonical"), score, known.program, score))
        readings = readings_of(candidates, None)
        features = dict(self._extractor.features(item.utterance, candidates, readings, (), without))
        return Prediction(tuple(candidates), Usage(), 0.0, features=features)


@dataclass(frozen=True)
class Trial:
    """Which test items are right with reviewed and with random utterances; which of these were wrong before."""

    reviewed: Sequence[bool]
    random: Sequence[bool]
    wrong_among_reviewed: int
    wrong_among_random: int

    @property
    def difference(self) -> float:
        """Accuracy with reviewed utterances minus that with random ones."""
        return mean(self.reviewed) - mean(self.random)


def prompted(model: LanguageModel) -> Learner:
    """Return the embedded model with the nearest examples of the domain as a learner."""
    return lambda domain: parser_systems(domain, model, {domain.name: PROMPTED}, features=True)[0]


def trial(domain: Domain, learner: Learner, records: Path, seed: int, test_items: int | None) -> Trial:
    """Compare both additions to a pool that the seed draws, on test items that it draws."""

    def run(domain: Domain, items: Sequence[Example], split: str) -> list[Record]:
        return run_evaluation(domain, [learner(domain)], items, split, Records(records))[0].records

    every = (*domain.examples, *domain.spare_examples)
    shuffled = [every[int(i)] for i in np.random.default_rng(seed).permutation(len(every))]
    small = domain.with_examples(tuple(shuffled[:POOL]), 0)
    said = shuffled[POOL : POOL + LOGGED]
    drawn = np.random.default_rng(seed + 1000).permutation(len(domain.test_examples))[:test_items]
    items = [domain.test_examples[int(i)] for i in drawn]
    calibration = fit(cases_of(run(small, small.examples, TRAIN)), MADE, "pool", "", 0.02)
    parses = run(small, said, "said")
    entries = [entry_of(i, item, parses[i], calibration) for i, item in enumerate(said)]
    reviewed = [entry.id for entry in to_review(entries)[:ADDED]]
    random = [int(i) for i in np.random.default_rng(seed + 2000).permutation(len(said))[:ADDED]]
    right, wrong = [], []
    for added in (reviewed, random):
        larger = small.with_examples((*small.examples, *(said[i] for i in added)), 0)
        right.append([record.correct_within(1) for record in run(larger, items, "test")])
        wrong.append(sum(not parses[i].correct_within(1) for i in added))
    return Trial(right[0], right[1], wrong[0], wrong[1])


def entry_of(number: int, item: Example, record: Record, calibration: Calibration) -> FeedbackEntry:
    """Return a parse as an entry of the feedback log about which the user has said nothing."""
    estimate = calibration.estimate(record.features or {})
    return FeedbackEntry(
        id=number,
        time="",
        utterance=item.utterance,
        context=item.context,
        target="canonical",
        model="",
        version="",
        candidates=tuple(LoggedCandidate(c.text, c.program, c.score) for c in candidates_of(record)),
        confidence=0.0 if estimate is None else estimate.confidence,
        decision="confirm",
        outcome=None,
        program=None,
        reviewed=False,
    )


def figures_of(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the figures of trials, paired by trial and by test item."""
    differences = [each.difference for each in trials]
    items = [pair(each.reviewed, each.random) for each in trials]
    paired = Paired(sum(each.only_first for each in items), sum(each.only_second for each in items))
    error = stdev(differences) / math.sqrt(len(trials)) if len(trials) > 1 else math.nan
    return {
        "trials": len(trials),
        "test_items": sum(len(each.random) for each in trials),
        "pool": POOL,
        "logged": LOGGED,
        "added": ADDED,
        "wrong_among_reviewed": mean(each.wrong_among_reviewed for each in trials),
        "wrong_among_random": mean(each.wrong_among_random for each in trials),
        "accuracy_reviewed": rounded(mean(mean(each.reviewed) for each in trials)),
        "accuracy_random": rounded(mean(mean(each.random) for each in trials)),
        "difference": rounded(mean(differences)),
        "standard_error": rounded(error) if len(trials) > 1 else None,
        "differences": [rounded(each) for each in differences],
        "only_reviewed_right": paired.only_first,
        "only_random_right": paired.only_second,
        "p_value": rounded(paired.p_value),
    }


def review(
    names: Sequence[str], model: LanguageModel | None, seeds: int, limit: int | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of a learner, the model or word alignment, on each domain, then on all of them."""
    learner = AlignmentSystem if model is None else prompted(model)
    records = RESULTS / f"confidence-review{'-alignment' if model is None else ''}-records.jsonl"
    every: list[Trial] = []
    for name in names:
        domain = load_domain(name).for_target("canonical")
        trials = []
        for seed in range(seeds):
            trials.append(trial(domain, learner, records, seed, limit))
            print(f"{name}, seed {seed}: {trials[-1].difference:+.3f}", flush=True)
        every += trials
        yield name, figures_of(trials)
    if len(names) > 1:
        yield "all", figures_of(every)
