"""Table 1 of the paper: one example of each dataset, from the stored data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES
from fewparse.domains.load import load_domain
from fewparse.evaluate.run import split_files
from fewparse.example import Example
from fewparse.experiment.paper_figures import Dataset, paper_figures
from fewparse.experiment.paper_tables import CALENDAR

DATA_EXAMPLES = "table1"
CAPTION = "Examples from the Overnight Calendar and SMCalFlow datasets"
HEADINGS = ("Dataset", "Natural language", "Canonical utterance", "Meaning representation")


@dataclass(frozen=True)
class DataExample:
    """An example of a domain; `paper` if it is the one of the paper. The canonical utterance is our grammar's."""

    domain: str
    utterance: str
    canonical: str
    program: str
    paper: bool


def data_examples(datasets: Sequence[Dataset], data: Path | None = None) -> list[DataExample]:
    """Return the example of the paper for each dataset, or the first test item if the data do not have it.

    `data` is the folder of datasets. Raises `DataUnavailable` if a dataset is not stored.
    """
    found = []
    for dataset in datasets:
        domain = load_domain(CALENDAR if dataset == "overnight" else dataset, data)
        example = find_utterance(domain, paper_figures().examples[dataset])
        shown = example or domain.test_examples[0]
        canonical = shown.canonical or (domain.translator and domain.translator.to_utterance(shown.program).best)
        found.append(
            DataExample(domain.name, shown.utterance, canonical or "", shown.program, example is not None)
        )
    return found


def find_utterance(domain: Domain, utterance: str) -> Example | None:
    """Return the first example with an utterance in the training, test and other files of a domain."""
    others = (path.name for path in split_files(domain).values())
    training = domain.read_examples(EXAMPLES)
    for examples in (training, domain.test_examples, *map(domain.read_examples, others)):
        for example in examples:
            if example.utterance == utterance:
                return example
    return None


def rows(examples: Sequence[DataExample]) -> list[tuple[str, ...]]:
    """Return the cells of each row."""
    return [(each.domain, each.utterance, each.canonical, each.program) for each in examples]


def plain(examples: Sequence[DataExample]) -> str:
    """Return the examples as plain text, one line per field."""
    width = max(map(len, HEADINGS))
    blocks = [
        "\n".join(f"{heading.ljust(width)}  {cell}" for heading, cell in zip(HEADINGS, row, strict=True))
        for row in rows(examples)
    ]
    return "\n\n".join([f"Table 1: {CAPTION}", *blocks])


def markdown(examples: Sequence[DataExample]) -> str:
    """Return the examples as a Markdown table."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *rows(examples)]
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([f"**Table 1.** {CAPTION}.\n", *body]) + "\n"


def as_json(examples: Sequence[DataExample]) -> dict[str, Any]:
    """Return the examples as a JSON object."""
    return {"table": DATA_EXAMPLES, "caption": CAPTION, "examples": [asdict(each) for each in examples]}
