"""How good are confidences, decisions and questions, what do they cost, and do reviewed utterances help?

Run: python benchmarks/confidence.py TASK [DOMAIN ...] [--limit N] [--seeds N]

test              figures on the test set of calibrated domains (default: calendar; see `fewparse calibrate`)
overnight         tune, fit and test the domains of Overnight (default: all): about 12 CPU minutes each
smcalflow         the same for SMCalFlow: about 25 CPU minutes
speed             parses with confidence and without, alternating (default: calendar)
review            50 reviewed utterances against 50 random ones, prompted model (default: overnight/calendar)
review-alignment  the same without a model, on more seeds (default: all domains of Overnight)
fits              compare ways of fitting on files of records, given instead of domains

Parses and adapters are kept in benchmarks/results: the same command resumes an interrupted run. `--limit` is the
maximum number of test items of a domain, for a trial, whose figures are printed only.
"""

import json
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confidence_figures import FIGURES, RECORDS, figures_on
from confidence_fits import compare
from confidence_review import review
from confidence_speed import speed
from confidence_tuned import OVERNIGHT, SMCALFLOW, measure_all
from fewparse import LanguageModel, load_domain, open_model
from fewparse.confidence.assess import find_calibration
from fewparse.datasets.overnight.world import WORLDS
from fewparse.domains.examples import OUT_OF_SCOPE_TEST
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import parser_systems, run_evaluation
from fewparse.lm.load import with_adapter
from fewparse.options import Options

WORLD_DOMAINS = [f"overnight/{world}" for world in WORLDS]
Found = Iterator[tuple[str, dict[str, Any]]]


def test(name: str, model: LanguageModel, limit: int | None) -> dict[str, Any]:
    """Return the figures on the test set, beside the baselines, and those of simulated confirmation."""
    domain = load_domain(name)
    target = domain.table.target
    domain = domain.for_target(target)
    options = Options.resolve(domain, model.name)
    calibration, note = find_calibration(domain, with_adapter(model, options.adapter), options)
    if calibration is None:
        sys.exit(note or f"{name} is not calibrated: fewparse calibrate {name}")
    systems = parser_systems(domain, model, {name: {}}, features=True)
    records, outside = (
        run_evaluation(domain, systems, items, split, Records(RECORDS))[0].records if items else []
        for items, split in (
            (domain.test_examples[:limit], "test"),
            (domain.out_of_scope(OUT_OF_SCOPE_TEST)[:limit], "out of scope"),
        )
    )
    return figures_on(domain, target, calibration, records, outside, 0.05 if limit is None else None)


def test_all(given: Namespace) -> Found:
    """Test each domain."""
    model = open_model()
    for name in given.domains or ["calendar"]:
        yield name, test(name, model, given.limit)


def overnight(given: Namespace) -> Found:
    """Tune, fit and test domains of Overnight."""
    names = given.domains or WORLD_DOMAINS
    yield from measure_all(names, open_model(), OVERNIGHT.limited(given.limit), plots=given.limit is None)


def smcalflow(given: Namespace) -> Found:
    """Tune, fit and test SMCalFlow."""
    sizes = SMCALFLOW.limited(given.limit)
    yield from measure_all(["smcalflow"], open_model(), sizes, plots=given.limit is None)


def speed_of(given: Namespace) -> Found:
    """Measure each domain."""
    model = open_model()
    for name in given.domains or ["calendar"]:
        yield name, speed(load_domain(name), model, given.limit or 48)


def review_prompted(given: Namespace) -> Found:
    """Compare reviewed with random utterances for the prompted model."""
    yield from review(given.domains or ["overnight/calendar"], open_model(), given.seeds or 3, given.limit or 80)


def review_alignment(given: Namespace) -> Found:
    """Compare reviewed with random utterances for word alignment."""
    yield from review(given.domains or WORLD_DOMAINS, None, given.seeds or 5, given.limit or 200)


def fits(given: Namespace) -> Found:
    """Compare ways of fitting on files of records."""
    yield ", ".join(given.domains), compare([Path(path) for path in given.domains])


TASKS: dict[str, Callable[[Namespace], Found]] = {
    "test": test_all,
    "overnight": overnight,
    "smcalflow": smcalflow,
    "speed": speed_of,
    "review": review_prompted,
    "review-alignment": review_alignment,
    "fits": fits,
}


def main() -> None:
    """Run a task; store and print figures as they come."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS, metavar="TASK")
    parser.add_argument("domains", nargs="*", metavar="DOMAIN")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    for name, found in TASKS[given.task](given):
        print(json.dumps({name: found}, indent=1), flush=True)
        if given.limit is None:
            stored = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
            stored.setdefault(given.task, {})[name] = found
            FIGURES.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
