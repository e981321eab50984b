"""Write the folder of an experiment whose results are given, without running a model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewparse.evaluate.record_lines import Record, to_line
from fewparse.evaluate.records import fingerprint
from fewparse.experiment.folder import RECORDS, CellEntry, Item, Manifest, write_configuration
from fewparse.experiment.grid import Cell
from fewparse.lm.usage import Usage

TRACE: tuple[dict[str, Any], ...] = (
    {"event": "RoundStarted", "number": 1, "prefixes": [""]},
    {"event": "Sampled", "prefix": "", "pieces": ["(on", " lamp", ")", "))", "!"], "valid": 3, "outcome": "cut"},
    {"event": "BackedOff", "prefix": "(on", "free": True, "choices": [" radio", " lamp"]},
    {"event": "Branched", "prefix": "(on", "piece": " radio"},
    {"event": "RoundEnded", "number": 1, "kept": [{"text": "(on lamp)", "score": -0.5, "finished": True}]},
)


def write_experiment(
    folder: Path,
    items: Mapping[str, Sequence[tuple[str, str]]],
    results: Mapping[tuple[str, str], Sequence[Record | None]],
    name: str = "lamps",
    notes: Mapping[str, Sequence[str]] = {},
) -> None:
    """Write an experiment with items (utterance, gold) by domain, and records by domain and decoder."""
    groups = {
        domain: [
            Item(domain, at, f"{domain}-{at}", utterance, "", gold, None, None)
            for at, (utterance, gold) in enumerate(pairs)
        ]
        for domain, pairs in items.items()
    }
    entries = [cell_entry(domain, decoder) for domain, decoder in results]
    write_configuration(folder, Manifest(name, "0", "test", None, True, tuple(entries), notes), groups)
    with (folder / RECORDS).open("wb") as file:
        for entry, (domain, _), records in zip(entries, results, results.values(), strict=True):
            for item, record in zip(groups[domain], records, strict=True):
                if record is not None:
                    key = (fingerprint(entry.settings), item.id)
                    file.write(to_line(entry.id, key, item.utterance, item.gold, record))


def cell_entry(domain: str, decoder: str) -> CellEntry:
    """Return the cell of a decoder."""
    options = {"domain": domain, "model": "embedded", "decoder": decoder}
    settings = {
        "model": {"name": "embedded", "sha256": "0" * 64},
        "options": options,
        "examples_sha256": "1" * 64,
        "files": {"domain.toml": "2" * 64},
    }
    return CellEntry(Cell(options).id, options, settings, 3)


def record(program: str, correct: bool, trace: Sequence[dict[str, Any]] | None = TRACE) -> Record:
    """Return the record of an item with one candidate."""
    return Record(
        outputs=(program,),
        programs=(program,),
        correct=(correct,),
        exact_match=(correct,),
        scores=(-1.25,),
        model_scores=(-0.5,),
        correct_before_reranking=correct,
        correct_by_vote=correct,
        usage=Usage(requests=3, rounds=1, forward_tokens=7),
        seconds=0.5,
        prompt_seconds=0.25,
        trace=None if trace is None else tuple(trace),
    )
