"""Choose settings with `fewparse optimize` from the plain defaults, and compare them with those chosen by hand.

The search uses training examples only. The test set is parsed with the plain defaults, with the settings that were
found, and with those of the domain, which were chosen by hand; all on the same items.
Run: python benchmarks/optimize.py DOMAIN [TARGET] [MINUTES] [number of test items]; an interrupted run resumes.
"""

import json
import sys
from dataclasses import asdict, replace
from typing import Any

from fewparse import Domain, LanguageModel, load_domain, open_model
from fewparse.domains.schema import RetrieveTable, SearchTable
from fewparse.evaluate.metrics import count, pair
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import TEST, parser_systems, run_evaluation
from fewparse.example import Target
from fewparse.experiment.statistics import paired_interval
from fewparse.files import cache_folder
from fewparse.optimize.budget import Budget
from fewparse.optimize.optimization import Plan, optimize
from fewparse.optimize.report import as_json, as_text
from fewparse.optimize.search import Choice
from fewparse.options import NO_ADAPTER, Options, ParserOptions
from measure import RESULTS

BY_HAND = "by hand"


def plain(domain: Domain) -> Domain:
    """Return a domain with the default settings of retrieval and search; maximum lengths and folding stay."""
    retrieve = RetrieveTable(fold=domain.table.retrieve.fold)
    search = SearchTable(max_tokens=domain.table.search.max_tokens)
    return replace(domain, table=domain.table.model_copy(update={"retrieve": retrieve, "search": search}))


def searched(choice: Choice) -> ParserOptions:
    """Return a choice as options of a parser."""
    given = asdict(choice.configuration)
    del given["merge"]
    return {**given, "rerank": choice.rerank}  # type: ignore[typeddict-item]


def main(name: str, target: Target, minutes: float, limit: int | None) -> None:
    """Search, parse the test set, and write the results."""
    by_hand = load_domain(name)
    model = open_model()
    label = f"{name.replace('/', '-')}-{target}"
    folder = cache_folder() / "optimization"
    domain = plain(by_hand).for_target(target)
    options = Options.resolve(domain, model.name, target=target, adapter=NO_ADAPTER)
    plan = Plan(
        domain,
        model,
        options,
        {"target": target},
        Budget(60 * minutes),
        folder,
        Records(folder / f"benchmark-{label}.jsonl"),
        report=print,
    )
    result = optimize(plan)
    print("\n".join(as_text(result)))
    assert result.found is not None
    choices = {"defaults": searched(result.found.control), "optimized": searched(result.found.chosen)}
    tested = test(by_hand, model, target, choices, Records(folder / f"benchmark-{label}-test.jsonl"), limit)
    found: dict[str, Any] = {"domain": name, "target": target, "minutes": minutes}
    found |= {"search": as_json(result), "test": tested}
    (RESULTS / f"optimize-{label}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(tested, indent=1))


def test(
    domain: Domain,
    model: LanguageModel,
    target: Target,
    choices: dict[str, ParserOptions],
    records: Records,
    limit: int | None,
) -> dict[str, Any]:
    """Return the accuracies of choices and of the domain's own settings, and paired comparisons with these."""
    shared: ParserOptions = {"target": target, "adapter": NO_ADAPTER}
    settings: dict[str, ParserOptions] = {BY_HAND: shared}
    settings |= {name: {**given, **shared} for name, given in choices.items()}
    systems = parser_systems(domain, model, settings)
    results = run_evaluation(domain, systems, domain.test_examples[:limit], TEST, records)
    flags = {each.name: [record.correct_within(1) for record in each.records] for each in results}
    found: dict[str, Any] = {}
    for name, own in flags.items():
        accuracy, compared = count(own), pair(own, flags[BY_HAND])
        low, high = paired_interval(compared.only_first, compared.only_second, len(own))
        found[name] = {
            "accuracy": round(accuracy.value, 4),
            "correct": accuracy.correct,
            "items": accuracy.items,
            "only this correct": compared.only_first,
            "only by hand correct": compared.only_second,
            "interval of the difference": [round(low, 4), round(high, 4)],
            "p_value": round(compared.p_value, 4),
        }
    return found


if __name__ == "__main__":
    domain_name, *rest = sys.argv[1:]
    main(
        domain_name,
        "program" if rest[:1] == ["program"] else "canonical",
        float(rest[1]) if len(rest) > 1 else 30.0,
        int(rest[2]) if len(rest) > 2 else None,
    )
