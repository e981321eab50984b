"""SMCalFlow (Semantic Machines and others, 2020) as Shin and others (2021) prepared it: dialogues with a calendar.

Fetched from the repository of the latter, or imported from a folder that holds the published files or single
turns as JSON lines. It is one domain, and beside its examples are kept

dev_100.jsonl   the 100 turns that the authors watched while they tuned a model
full.jsonl      every turn of the dialogues that have no training turn
grammar/        the authors' grammar, as it was published

The authors' training turns are not published. The 300 that are taught here are a selection, made for fewparse,
from the published dialogues that have neither a test turn nor one of the 100.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path

from fewparse.datasets.download import Progress
from fewparse.datasets.folder import TEST, TRAIN, Kept, Outcome, as_lines, keep, kept_domain
from fewparse.datasets.published import (
    ONLY_ONCE,
    WHOLE,
    Sources,
    fetch_published,
    is_published,
    read_as_text,
    read_bytes,
    read_sources,
    unpublished,
)
from fewparse.datasets.smcalflow.files import Turn, as_list, distinct, read_dialogues, read_turns, select
from fewparse.errors import DataError, DataUnavailable, UsageError

NAME = "smcalflow"
DEV, FULL, GRAMMAR = "dev_100.jsonl", "full.jsonl", "grammar"
DIALOGUES = "valid.dataflow_dialogues_ir.jsonl"
LISTS = {TEST: "ids_dev_200_uniform.txt", DEV: "ids_dev_100_uniform.txt"}
LINES = {TRAIN: "train_300.jsonl", TEST: "dev_200.jsonl", DEV: "dev_100.jsonl", FULL: "dev_all.jsonl"}
SELECTION = Path(str(resources.files("fewparse.datasets.smcalflow") / "train_300.txt"))
NEEDED = (
    f"There are two forms: {DIALOGUES}.gz with {LISTS[TEST]}, "
    f"or {LINES[TRAIN]} with {LINES[TEST]}; they may be in subfolders."
)
Found = Mapping[str, list[Path]]


def get(
    folder: Path, progress: Progress | None = None, base_url: str | None = None, force: bool = False
) -> Outcome:
    """Fetch the published files into the data folder, those that are not there yet, and import them."""
    return import_from(fetch_published(NAME, read_sources(NAME), folder, progress, base_url, force), folder)


def kept(folder: Path) -> tuple[Kept, ...]:
    """The one domain, if it is in the data folder."""
    found = kept_domain(NAME, folder / NAME, others=(DEV, FULL))
    return (found,) if found else ()


def import_from(source_dir: Path, folder: Path) -> Outcome:
    """Bring the turns found in or below a folder into the data folder, and what is there of the grammar."""
    if not source_dir.is_dir():
        raise UsageError(f"there is no folder {source_dir}")
    reading = Reading(source_dir)
    splits = reading.splits()
    rules = reading.grammar()
    normal = {name: as_lines(map(fields, turns)) for name, turns in splits.items()}
    keep({**normal, **rules}, folder / NAME, outdated={DEV, FULL} - set(splits))
    return Outcome(kept(folder), tuple(reading.notes))


def fields(turn: Turn) -> dict[str, str]:
    """An example as it is written; the context only where there is one."""
    example = turn.example
    context = {"context": example.context} if example.context else {}
    return {"utterance": example.utterance, "program": example.program, **context}


class Reading:
    """One import: the files that a folder has, and the notes that are taken while they are read."""

    def __init__(self, source_dir: Path) -> None:
        self.source_dir = source_dir
        self.sources: Sources = read_sources(NAME)
        self.rules = [f.path.name for f in self.sources.files if f.path.suffix in (".csv", ".scfg")]
        self.found = find_files(source_dir, {DIALOGUES, *LISTS.values(), *LINES.values(), *self.rules})
        self.notes: list[str] = []

    def splits(self) -> dict[str, tuple[Turn, ...]]:
        """The turns of each file of the normal form that can be made."""
        lines = [name for name in LINES.values() if name in self.found]
        if not self.found.keys() - set(self.rules):
            raise DataUnavailable(f"{self.source_dir} holds no turns of {NAME}", NEEDED)
        if DIALOGUES in self.found and lines:
            message = f"the published dialogues are also there, in {self.found[DIALOGUES][0]}"
            raise DataError(message, self.found[lines[0]][0], hint="Import from a folder that has one form only.")
        splits, places = (self.from_lines(), LINES) if lines else (self.from_dialogues(), LISTS)
        missing = [(name, split) for split, name in places.items() if split not in splits]
        self.notes += [f"not in {self.source_dir}: {name}; so {split} cannot be made" for name, split in missing]
        return splits

    def from_dialogues(self) -> dict[str, tuple[Turn, ...]]:
        """The splits that lists name, of the published dialogues."""
        turns = self.turns(DIALOGUES, read_dialogues)
        where = self.path(DIALOGUES)
        splits = {TRAIN: select(SELECTION.read_text(encoding="utf-8"), SELECTION, turns, where)}
        for split, name in LISTS.items():
            if split == TEST or name in self.found:
                splits[split] = select(self.text(name), self.path(name), turns, where)
        return {**splits, FULL: unseen(turns, splits[TRAIN])}

    def from_lines(self) -> dict[str, tuple[Turn, ...]]:
        """The splits, each from a file of its own."""
        splits: dict[str, tuple[Turn, ...]] = {}
        hashes = {split: self.sources.hashes[name] for split, name in LISTS.items()}
        hashes[TRAIN] = hashlib.sha256(SELECTION.read_bytes()).hexdigest()
        for split, name in LINES.items():
            if split in (TRAIN, TEST) or name in self.found:
                turns = self.turns(name, read_turns)
                splits[split] = unseen(turns, splits[TRAIN]) if split == FULL else tuple(turns.values())
                listed = as_list(turns.values()).encode("utf-8")
                if split in hashes and hashlib.sha256(listed).hexdigest() != hashes[split]:
                    self.notes.append(f"{self.path(name)} has other turns than it should; imported as it is")
        return splits

    def turns(self, name: str, read: Callable[[str, Path], Iterator[Turn]]) -> dict[str, Turn]:
        """The turns of a file by their names, but for those at which nothing was said."""
        path = self.path(name)
        turns = distinct(read(self.text(name), path), path)
        said = {turn.id: turn for turn in turns.values() if turn.example.utterance.strip()}
        if not said:
            raise DataError("there is no turn in this file", path, hint=WHOLE)
        if silent := len(turns) - len(said):
            self.notes.append(
                f"{path}: left out {silent} {'turn' if silent == 1 else 'turns'} without an utterance"
            )
        return said

    def grammar(self) -> dict[str, bytes]:
        """What is there of the authors' grammar."""
        contents: dict[str, bytes] = {}
        for name in self.rules:
            candidates = {path: read_bytes(path) for path in self.found.get(name, ())}
            published = [p for p, content in candidates.items() if is_published(p, content, self.sources)]
            if published:
                contents[name] = candidates[published[0]]
            elif candidates:
                path = self.path(name)
                contents[name] = candidates[path]
                self.notes.append(unpublished(path))
        if missing := [name for name in self.rules if name not in contents]:
            self.notes.append(f"not in {self.source_dir}: {', '.join(missing)} (of the authors' grammar)")
        return {f"{GRAMMAR}/{name}": content for name, content in contents.items()}

    def text(self, name: str) -> str:
        """What a file says, with a note if it is not the published one."""
        path = self.path(name)
        content = read_bytes(path)
        if not is_published(path, content, self.sources):
            self.notes.append(unpublished(path))
        return read_as_text(content, path)

    def path(self, name: str) -> Path:
        """The one file of a name."""
        if name not in self.found:
            raise DataError(f"there is no {name} here", self.source_dir, hint=NEEDED)
        first, *others = self.found[name]
        if others:
            raise DataError(f"{name} is also there as {first}", others[0], hint=ONLY_ONCE)
        return first


def find_files(source_dir: Path, names: set[str]) -> Found:
    """The files of these names in or below a folder; JSON lines may be packed."""
    found: dict[str, list[Path]] = {}
    for path in sorted(source_dir.rglob("*")):
        name = path.name.removesuffix(".gz") if path.name.endswith(".jsonl.gz") else path.name
        if name in names and path.is_file():
            found.setdefault(name, []).append(path)
    return found


def unseen(turns: Mapping[str, Turn], taught: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns of the dialogues from which none is taught."""
    dialogues = {turn.dialogue for turn in taught}
    return tuple(turn for turn in turns.values() if turn.dialogue not in dialogues)
