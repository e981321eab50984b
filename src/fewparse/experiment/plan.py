"""Plan an experiment: load the domains, resolve the options of every cell, and check everything before it runs."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES
from fewparse.errors import UsageError
from fewparse.evaluate.records import fingerprint, item_fingerprint
from fewparse.evaluate.run import TRAIN, check_not_tuned_on, load_split
from fewparse.evaluate.system import settings_of
from fewparse.example import Example
from fewparse.experiment.folder import CellEntry, Item, Manifest
from fewparse.experiment.grid import Cell, ExperimentTable
from fewparse.lm.load import NamedModel
from fewparse.options import Options, prepare
from fewparse.search.settings import MAX_WIDTH

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings

ALL_CANDIDATES = 2 * MAX_WIDTH


@dataclass(frozen=True)
class PlannedCell:
    """A cell with its domain, loaded for its target, and its resolved options."""

    cell: Cell
    domain: Domain
    options: Options
    entry: CellEntry

    @cached_property
    def settings_key(self) -> str:
        """Identifies the cell in the records."""
        return fingerprint(self.settings)

    @property
    def name(self) -> str:
        """The name of the cell in the records."""
        return self.cell.id

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that the results of the cell depend on."""
        return self.entry.settings

    @property
    def prompt_key(self) -> tuple[Hashable, ...]:
        """Equal for cells that have the same prompts."""
        options = self.options
        names = ("target", "prompt", "description_lines", "examples", "order", "retriever", "fold")
        rest = (options.search.seed, options.adapter and options.adapter.sha256, self.entry.pool)
        return (*(getattr(options, name) for name in names), self.cell.options.get("retriever_model"), *rest)


@dataclass(frozen=True)
class Plan:
    """An experiment that is ready to run: its cells, and the items of each domain.

    `remote` are the settings of models behind a server.
    """

    table: ExperimentTable
    cells: tuple[PlannedCell, ...]
    examples: Mapping[str, tuple[Example, ...]]
    items: Mapping[str, tuple[Item, ...]]
    manifest: Manifest
    remote: "RemoteSettings | None" = None

    def by_model(self) -> Iterator[tuple[str, list[PlannedCell]]]:
        """Yield the cells of each model, those of one domain and those with the same prompts adjacent."""
        by_model: dict[str, dict[tuple[Hashable, ...], list[PlannedCell]]] = {}
        domains = list(self.items)
        for planned in sorted(self.cells, key=lambda each: domains.index(each.cell.domain)):
            key = (planned.cell.domain, *planned.prompt_key)
            by_model.setdefault(planned.cell.model, {}).setdefault(key, []).append(planned)
        for model, groups in by_model.items():
            yield model, [planned for group in groups.values() for planned in group]

    @property
    def size(self) -> int:
        """The number of records of the whole experiment."""
        return sum(len(self.items[planned.cell.domain]) for planned in self.cells)


def make_plan(
    table: ExperimentTable,
    data: Path | None = None,
    code_allowed: Callable[[str], bool] = lambda domain: True,
    remote: "RemoteSettings | None" = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Plan:
    """Load everything that the cells need except models; raise an error for the first mistake.

    `code_allowed` says whether the code of a domain folder may run; `remote` are the settings of models behind a
    server; `progress` is called with the number of cells that are prepared and of all cells.
    """
    cells = table.cells()
    planned: list[PlannedCell] = []
    examples: dict[str, tuple[Example, ...]] = {}
    items: dict[str, tuple[Item, ...]] = {}
    notes: dict[str, Sequence[str]] = {}
    for number, cell in enumerate(cells, 1):
        planned.append(plan_cell(cell, table, data, code_allowed(cell.domain), remote, planned))
        domain = planned[-1].domain
        selected = load_split(domain, table.split)[: table.limit]
        if examples.setdefault(cell.domain, selected) != selected:
            hint = "Use one pool per experiment, or another split."
            raise UsageError(f"the items of the split {table.split} depend on the pool, which varies", hint)
        if cell.domain not in items:
            items[cell.domain] = tuple(make_items(cell.domain, domain, selected, table.split))
            notes[cell.domain] = domain.data_notes
        progress(number, len(cells))
    entries = tuple(each.entry for each in planned)
    version = str(entries[0].settings["version"])
    manifest = Manifest(table.name, version, table.split, table.limit, table.trace, entries, notes)
    return Plan(table, tuple(planned), examples, items, manifest, remote)


MODELS = ("model", "retriever_model")


def identity(model: str, remote: "RemoteSettings | None") -> dict[str, str | None]:
    """Return the name of a model and what identifies it: the hash of its file, or its server; None if unknown."""
    return {"name": model, "identity": NamedModel(model, remote=remote).identity}


def plan_cell(
    cell: Cell,
    table: ExperimentTable,
    data: Path | None,
    allow_code: bool,
    remote: "RemoteSettings | None",
    others: Iterable[PlannedCell],
) -> PlannedCell:
    """Load what a cell needs except models; raise an error for the first mistake.

    If one of `others` has an equal domain, its object is used, so that a grammar is loaded once.
    """
    domain, options = prepared(cell, data, allow_code)
    domain = next((other.domain for other in others if other.domain == domain), domain)
    check_not_tuned_on(domain, table.split, options.target, options.adapter)
    models = {name: identity(str(cell.options[name]), remote) for name in MODELS if name in cell.options}
    settings = models | settings_of(domain, options)
    pool = len(domain.examples) + domain.underivable
    return PlannedCell(cell, domain, options, CellEntry(cell.id, dict(cell.options), settings, pool))


def prepared(cell: Cell, data: Path | None, allow_code: bool) -> tuple[Domain, Options]:
    """Return the domain of a cell for its target, and its resolved options."""
    options: dict[str, Any] = {
        name: value for name, value in cell.options.items() if name not in ("domain", "model")
    }
    if "grammar" in options:
        options["grammar"] = Path(options["grammar"])
    domain, resolved = prepare(
        cell.domain, cell.model, data=data, allow_code=allow_code, n_best=ALL_CANDIDATES, **options
    )
    domain.require_code()
    return domain, resolved


def make_items(name: str, domain: Domain, examples: Sequence[Example], split: str) -> Iterator[Item]:
    """Yield the items of a domain; a training item does not count as its own training example."""
    seen: dict[str, list[int]] = {}
    pool = domain.read_examples(EXAMPLES)
    for position, example in enumerate(pool, 1):
        seen.setdefault(example.program, []).append(position)
    for index, example in enumerate(examples):
        without = [example] if split == TRAIN else []
        positions = [p for p in seen.get(example.program, ()) if pool[p - 1].key != example.key]
        yield Item(
            name,
            index,
            item_fingerprint(example, without),
            example.utterance,
            example.context,
            example.program,
            example.canonical,
            min(positions, default=None),
        )
