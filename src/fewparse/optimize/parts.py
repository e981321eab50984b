"""The training examples to parse, each with what may be used for it: never the example itself."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fewparse.calibrate.folds import config_of, folds_of, has_learned, tuned_adapter
from fewparse.domains.check import words
from fewparse.domains.domain import Domain
from fewparse.errors import UsageError
from fewparse.evaluate.run import TRAIN, Split
from fewparse.example import Example
from fewparse.lm.adapter import Adapter
from fewparse.lm.model import LanguageModel
from fewparse.optimize.budget import Budget
from fewparse.options import Options

MIN_EXAMPLES = 10
MIN_SPARE = 50
HELD_OUT: Split = "held out"
ADAPTER_FOLDS, GRAMMAR_FOLDS = 4, 10


@dataclass(frozen=True)
class Part:
    """Items, the domain with the examples that may be used for them, and the adapter, if the model is tuned.

    In the split `train`, an item may be among these examples; it is excluded when it is parsed.
    """

    domain: Domain
    items: tuple[Example, ...]
    split: Split
    adapter: Adapter | None = None


@dataclass(frozen=True)
class Parts:
    """All parts, and how the items are held out, in words."""

    parts: tuple[Part, ...]
    method: str

    @property
    def items(self) -> list[tuple[int, Example]]:
        """The items, each with the index of its part."""
        return [(number, item) for number, part in enumerate(self.parts) for item in part.items]


def parts_of(
    domain: Domain,
    options: Options,
    model: LanguageModel,
    budget: Budget,
    folder: Path,
    folds: int | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Parts:
    """Return the items of a domain; raise `UsageError` if there are too few, `OutOfTime` while adapters are tuned.

    A prompted model parses examples beyond the pool, if there are enough, or each example without itself; if the
    grammar is induced from the examples, parts of them by the grammar of the others. A tuned model has learned the
    examples: it parses those beyond the pool if there are enough, otherwise parts by adapters tuned on the others,
    which are those of `fewparse calibrate` and stored in `folder`.
    """
    check_enough(domain)
    spare = domain.spare_examples
    if options.adapter is not None:
        if (
            len(spare) >= MIN_SPARE
            and folds is None
            and not has_learned(options.adapter.provenance, domain, options.target)
        ):
            return Parts((Part(domain, spare, HELD_OUT, options.adapter),), "examples beyond the pool")
        return tuned_parts(domain, options, model, budget, folder, folds or ADAPTER_FOLDS, report)
    if len(spare) >= MIN_SPARE:
        return Parts((Part(domain, spare, HELD_OUT),), "examples beyond the pool")
    kind = domain.constraint_kind
    if folds is not None or (kind.needs_examples and not kind.finite):
        count = min(folds or GRAMMAR_FOLDS, len(domain.examples))
        made = folds_of(domain, count)
        parts = tuple(Part(fold.domain, fold.items, HELD_OUT) for fold in made)
        return Parts(parts, f"{count} parts, each without its examples in prompt and grammar")
    items = (*domain.examples, *spare)
    return Parts((Part(domain, items, TRAIN),), "each example without itself in the prompt")


def check_enough(domain: Domain) -> None:
    """Raise `UsageError` if a domain has too few examples to compare settings on."""
    count = len(domain.examples) + len(domain.spare_examples)
    if count < MIN_EXAMPLES:
        raise UsageError(
            f"the domain {domain.name} has {count} examples, too few to choose settings on",
            f"Write at least {MIN_EXAMPLES}; 100 or more are better.",
        )


def tuned_parts(
    domain: Domain,
    options: Options,
    model: LanguageModel,
    budget: Budget,
    folder: Path,
    count: int,
    report: Callable[[str], None],
) -> Parts:
    """Return parts of the examples, each with an adapter that is tuned on the others; tuning takes of the budget.

    Items whose utterance is also among the others are left out: the adapter has learned it.
    """
    adapter = options.adapter
    if adapter is None or adapter.provenance is None:
        raise UsageError(
            f"{'the adapter' if adapter is None else adapter.path} was not tuned by fewparse: it may have learned "
            "the examples, and adapters of parts of them cannot be tuned like it",
            "Choose the settings of the prompted model: --adapter none",
        )
    if adapter.provenance.data_sha256 != domain.data_sha256(options.target):
        raise UsageError(
            f"the adapter {adapter.path} was tuned on other examples than the domain has now",
            f"Tune it again: fewparse tune {domain.argument}. Or choose the settings of the prompted model: "
            "--adapter none",
        )
    config = config_of(adapter, None)

    def within_budget(text: str) -> None:
        report(f"tuning adapters, {text}")
        budget.check()

    parts = []
    for fold in folds_of(domain, count):
        made = tuned_adapter(fold, options.target, model, config, folder, within_budget)
        learned = {words(example.utterance) for example in fold.domain.examples}
        items = tuple(item for item in fold.items if words(item.utterance) not in learned)
        parts.append(Part(fold.domain, items, HELD_OUT, made))
    return Parts(tuple(parts), f"{count} parts, each by an adapter tuned on the others")
