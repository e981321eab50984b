"""The whole procedure: parse examples that the model has not learned, and utterances out of scope; fit; store."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fewparse.calibrate.fit import MIN_EXAMPLES, Case, check_cases, fit
from fewparse.calibrate.folds import config_of, folds_of, has_learned, limited, tuned_adapter
from fewparse.confidence.assess import made_for
from fewparse.confidence.calibration import Calibration
from fewparse.domains.domain import Domain
from fewparse.domains.load import bundled_domains, load_domain
from fewparse.errors import CalibrationError
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import TRAIN, Listener, Split, parser_systems, run_evaluation
from fewparse.example import Example, Target
from fewparse.lm.adapter import Adapter
from fewparse.lm.load import NamedModel, with_adapter
from fewparse.lm.model import LanguageModel
from fewparse.options import NO_ADAPTER, Options, ParserOptions

DEFAULT_FOLDS = 4
HELD_OUT, OUTSIDE = "held out", "out of scope"
NEGATIVES_PER_DOMAIN = 30


@dataclass(frozen=True)
class Plan:
    """What to calibrate: a domain with a model and the options of the parser.

    Without `folds`, an adapter is calibrated on examples beyond the pool if there are enough, otherwise with
    adapters of four folds. `epochs` is their number of epochs, by default that of the adapter. `limit` is the
    maximum number of examples to parse. `negatives` are names of domains whose utterances are out of scope. Work
    that can be resumed is stored in `folder`.
    """

    domain: Domain
    model: LanguageModel
    target: Target
    given: ParserOptions
    folder: Path
    folds: int | None = None
    epochs: int | None = None
    limit: int | None = None
    negatives: Sequence[str] = ()
    max_declined: float = 0.02
    data: Path | None = None
    retriever_model: LanguageModel | NamedModel | None = None
    report: Callable[[str], None] = lambda text: None
    after: Listener = lambda progress: None
    records: Records = field(default_factory=Records)


def calibrate(plan: Plan) -> Calibration:
    """Return the calibration of a plan; raise `CalibrationError` if there are too few examples."""
    domain = plan.domain.for_target(plan.target)
    options = Options.resolve(domain, plan.model.name, **plan.given)
    if len(domain.examples) + len(domain.spare_examples) < MIN_EXAMPLES:
        raise CalibrationError(
            f"the domain {domain.name} has {len(domain.examples)} examples, too few to calibrate",
            f"Write at least {MIN_EXAMPLES}; 200 or more are better.",
        )
    method, cases = parse_examples(plan, domain, options)
    check_cases(cases)
    outside = out_of_scope(domain, plan.negatives, plan.data)
    plan.report("utterances out of scope")
    records = run(plan, domain, plan.given, outside, OUTSIDE)
    cases += [Case(r.features, right=False, in_scope=False) for r in records if r.features is not None]
    applied = with_adapter(plan.model, options.adapter)
    made = made_for(domain, applied, options.for_model(applied, domain))
    return fit(cases, made, method, domain.data_sha256(plan.target), plan.max_declined)


def parse_examples(plan: Plan, domain: Domain, options: Options) -> tuple[str, list[Case]]:
    """Return how examples were parsed by a model that has not learned them, and the parses."""
    if options.adapter is None and plan.folds is None:
        items = (domain.spare_examples or domain.examples)[: plan.limit]
        plan.report("examples, each without itself in the prompt")
        return "each example without itself in the prompt", cases_of(run(plan, domain, plan.given, items, TRAIN))
    if plan.folds is None and options.adapter is not None:
        spare = domain.spare_examples
        if len(spare) >= MIN_EXAMPLES and not has_learned(options.adapter.provenance, domain, plan.target):
            plan.report("examples beyond the pool")
            items = spare[: plan.limit]
            return "examples beyond the pool", cases_of(run(plan, domain, plan.given, items, HELD_OUT))
    return parse_folds(plan, domain, options.adapter)


def parse_folds(plan: Plan, domain: Domain, adapter: Adapter | None) -> tuple[str, list[Case]]:
    """Parse every fold with the others as examples and, if there is an adapter, one tuned on them alike."""
    count = plan.folds or DEFAULT_FOLDS
    folds = limited(folds_of(domain, count), plan.limit)
    config = None if adapter is None else config_of(adapter, plan.epochs)
    cases: list[Case] = []
    for fold in folds:
        chosen: str | Path = NO_ADAPTER
        if config is not None:
            chosen = tuned_adapter(fold, plan.target, plan.model, config, plan.folder, plan.report).path
        plan.report(f"fold {fold.number + 1} of {count}")
        cases += cases_of(run(plan, fold.domain, {**plan.given, "adapter": chosen}, fold.items, HELD_OUT))
    notes = [f"{count} folds"]
    if len(folds) < count:
        notes.append(f"{len(folds)} of them parsed")
    if config is not None:
        notes.append(f"adapters of {config.epochs} epochs")
    return ", ".join(notes), cases


def run(plan: Plan, domain: Domain, given: ParserOptions, items: Sequence[Example], split: Split) -> list[Record]:
    """Parse items with their features, resuming from the records."""
    if not items:
        return []
    own: ParserOptions = {**given, "target": plan.target}
    systems = parser_systems(domain, plan.model, {"": own}, plan.retriever_model, features=True)
    return run_evaluation(domain, systems, items, split, plan.records, plan.after)[0].records


def cases_of(records: Sequence[Record]) -> list[Case]:
    """Return the records of examples as cases; those without an output have no features and are left out."""
    return [Case(r.features, r.correct_within(1)) for r in records if r.features is not None]


def out_of_scope(domain: Domain, negatives: Sequence[str], data: Path | None = None) -> list[Example]:
    """Return utterances that no program expresses: of the domain's file, and of other domains.

    Without `negatives`, these are the other bundled domains.
    """
    names = negatives or [name for name in bundled_domains() if name != domain.name]
    found = list(domain.out_of_scope())
    known = {example.utterance for example in (*domain.examples, *domain.test_examples)}
    for name in names:
        utterances = sorted({example.utterance for example in load_domain(name, data, allow_code=False).examples})
        chosen = random.Random(0).sample(utterances, min(NEGATIVES_PER_DOMAIN, len(utterances)))
        found += [Example(utterance, "") for utterance in chosen if utterance not in known]
    return found
