"""The folder of an experiment: its configuration, its items and its records.

experiment.json   the cells with all settings that results depend on, and hashes of data, grammars and models
items.jsonl       the items of each domain, with their gold programs
records.jsonl     one line per cell and item, appended as results arrive; a shard has its own records-I-of-N.jsonl

A run may continue in a folder of the same configuration only.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fewparse.errors import MAX_LISTED, ResultsError, UsageError
from fewparse.evaluate.records import not_writable
from fewparse.files import exists, parse_json_line, read_bytes, write_atomically
from fewparse.limits import FILE_BYTES
from fewparse.text import to_json

MANIFEST, ITEMS, RECORDS = "experiment.json", "items.jsonl", "records.jsonl"
SHARD_RECORDS = "records-{number}-of-{count}.jsonl"
FORMAT = 1
ELSEWHERE = "Write the results to another folder (--out)."


@dataclass(frozen=True)
class Item:
    """An item of a domain; `id` is its fingerprint in the records.

    `first_seen` is the position, from 1, of the first training example with the same gold program; None if there
    is none.
    """

    domain: str
    index: int
    id: str
    utterance: str
    context: str
    gold: str
    canonical: str | None
    first_seen: int | None


@dataclass(frozen=True)
class CellEntry:
    """A cell in the manifest.

    `options` are those that the grid sets. `settings` are all that its results depend on, as in `records.jsonl`;
    `pool` is the number of training examples.
    """

    id: str
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    pool: int


@dataclass(frozen=True)
class Manifest:
    """The configuration of an experiment; `notes` are remarks on the data of each domain."""

    name: str
    version: str
    split: str
    limit: int | None
    trace: bool
    cells: tuple[CellEntry, ...]
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    format: int = FORMAT


@dataclass(frozen=True)
class Shard:
    """One of `count` equal parts of the items: those whose index modulo `count` is `number` - 1."""

    number: int = 1
    count: int = 1

    @staticmethod
    def parse(text: str) -> "Shard":
        """Read `I/N`, such as `2/4`; raise `UsageError` for anything else."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 10_000):
            raise UsageError(f"the shard is {text!r}", "Write it as I/N, with I from 1 to N: --shard 1/4")
        return Shard(int(number), int(count))

    def __contains__(self, index: int) -> bool:
        return index % self.count == self.number - 1

    @property
    def records_name(self) -> str:
        """The name of its file of records."""
        return RECORDS if self.count == 1 else SHARD_RECORDS.format(number=self.number, count=self.count)


ALL_ITEMS = Shard()


def read_manifest(folder: Path) -> Manifest:
    """Read the configuration of a folder; raise `ResultsError` if it is not one of an experiment."""
    path = folder / MANIFEST
    try:
        values = json.loads(read_bytes(path, ResultsError, FILE_BYTES))
        cells = tuple(CellEntry(**cell) for cell in values.pop("cells"))
        manifest = Manifest(**values, cells=cells)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ResultsError(f"not the configuration of an experiment: {error}", path, hint=ELSEWHERE) from None
    if manifest.format != FORMAT:
        raise ResultsError(f"format {manifest.format} of another version of fewparse", path, hint=ELSEWHERE)
    return manifest


def read_items(folder: Path) -> dict[str, list[Item]]:
    """Return the items of each domain, in order; raise `ResultsError` if the file is damaged."""
    path = folder / ITEMS
    items: dict[str, list[Item]] = {}
    for number, line in enumerate(read_bytes(path, ResultsError).decode(errors="replace").splitlines(), 1):
        try:
            item = Item(**parse_json_line(line, number, path, ResultsError, ELSEWHERE))
        except TypeError as error:
            raise ResultsError(f"not an item: {error}", path, number, hint=ELSEWHERE) from None
        items.setdefault(item.domain, []).append(item)
    return items


def write_configuration(
    folder: Path, manifest: Manifest, items: Mapping[str, Sequence[Item]], extend: bool = False
) -> None:
    """Write manifest and items; if there are some already, raise `ResultsError` unless they are the same.

    With `extend`, the cells and items of the folder and the new ones are joined.
    """
    path = folder / MANIFEST
    if exists(path):
        old = read_manifest(folder)
        changes = differences(old, manifest)
        if not changes.all:
            return
        if changes.settings or not extend:
            raise ResultsError(
                "the folder has the results of another configuration:\n" + "\n".join(changes.shown),
                path,
                hint=ELSEWHERE if changes.settings else f"{ELSEWHERE} Or join both in this one: --extend",
            )
        manifest, items = joined(old, manifest), joined_items(read_items(folder), items)
    lines = [to_json(asdict(item)) + "\n" for group in items.values() for item in group]
    try:
        write_atomically(folder / ITEMS, "".join(lines).encode())
        write_atomically(path, (to_json(asdict(manifest), indent=1) + "\n").encode())
    except OSError as error:
        raise not_writable(path, error, ELSEWHERE) from None


def joined(old: Manifest, new: Manifest) -> Manifest:
    """Return a configuration with the cells of both."""
    cells = {cell.id: cell for cell in (*old.cells, *new.cells)}
    limit = None if old.limit is None or new.limit is None else max(old.limit, new.limit)
    return replace(new, cells=tuple(cells.values()), limit=limit, notes={**old.notes, **new.notes})


def joined_items(
    old: Mapping[str, Sequence[Item]], new: Mapping[str, Sequence[Item]]
) -> Mapping[str, Sequence[Item]]:
    """Return the items of both; those of a domain are the first ones of its split in both, so the longer list."""
    return {name: max(old.get(name, ()), new.get(name, ()), key=len) for name in {**old, **new}}


@dataclass(frozen=True)
class Differences:
    """How a configuration differs from the one of a folder: in its `cells` and items, or in `settings` of both."""

    cells: tuple[str, ...]
    settings: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All differences."""
        return self.settings + self.cells

    @property
    def shown(self) -> tuple[str, ...]:
        """The first differences, and how many more there are."""
        more = len(self.all) - MAX_LISTED
        return (*self.all[:MAX_LISTED], *([f"  and {more} more differences"] if more > 0 else []))


def differences(old: Manifest, new: Manifest) -> Differences:
    """Compare two configurations; each difference is a line for a message."""
    before, after = ({cell.id: cell for cell in manifest.cells} for manifest in (old, new))
    settings = [
        change_line(name, getattr(old, name), getattr(new, name))
        for name in ("version", "split", "trace")
        if getattr(old, name) != getattr(new, name)
    ]
    cells = [change_line("limit", old.limit, new.limit)] if old.limit != new.limit else []
    cells += [f"  only in the folder: {options_text(before[i].options)}" for i in before if i not in after]
    cells += [f"  only in the new one: {options_text(after[i].options)}" for i in after if i not in before]
    changed: dict[str, list[CellEntry]] = {}
    for i in before:
        for change in changes_between(before[i].settings, after[i].settings) if i in after else ():
            changed.setdefault(change, []).append(after[i])
    for change, of_cells in changed.items():
        where = options_text(of_cells[0].options) if len(of_cells) == 1 else f"{len(of_cells)} cells"
        settings.append(f"  {change} ({where})")
    return Differences(tuple(cells), tuple(settings))


def change_line(name: str, old: object, new: object) -> str:
    """Return the line for a changed setting."""
    return f"  {name}: {old} in the folder, {new} now"


def options_text(options: Mapping[str, Any]) -> str:
    """Return options for a message."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


def changes_between(old: Any, new: Any, name: str = "") -> list[str]:
    """Return the paths of the values in which two JSON values differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        return [
            change
            for key in keys
            for change in changes_between(old.get(key), new.get(key), f"{name}.{key}".lstrip("."))
        ]
    return [] if old == new else [f"{name} was {old!r:.60}, is {new!r:.60}"]
