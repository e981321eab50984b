"""SMCalFlow (Semantic Machines et al., 2020), calendar dialogues, as prepared by Shin et al. (2021).

Downloaded from the repository of Shin et al., or imported from a folder with the published files or with single
turns as JSON lines. It is one domain. Besides the examples, these files are stored:

dev_100.jsonl    the 100 turns on which the authors monitored training
full.jsonl       every turn of the validation dialogues without a training turn
data_notes.txt   which training turns these are
grammar/         the authors' grammar, as published

The training turns are the authors' 300, from the dialogues of the training set. If the folder lacks these
dialogues or the list of the 300, a substitute takes their place: 300 turns of the validation dialogues that have
neither a test turn nor one of the 100 turns, selected for fewparse.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from fewparse.datasets.dataset import (
    CHECK_FILE,
    ONLY_ONCE,
    ConvertedFiles,
    Dataset,
    Sources,
    decode,
    not_published,
    read_bytes,
    read_lines,
)
from fewparse.datasets.smcalflow.files import (
    Turn,
    index_turns,
    read_dialogues,
    read_ids,
    read_turns,
    select,
    to_id_list,
)
from fewparse.datasets.storage import DATA_NOTES, TEST, TRAIN, to_data_notes, to_jsonl
from fewparse.errors import DataError, DataUnavailable

NAME = "smcalflow"
DEV, FULL, GRAMMAR = "dev_100.jsonl", "full.jsonl", "grammar"
DIALOGUES, TRAIN_DIALOGUES = "valid.dataflow_dialogues_ir.jsonl", "train.dataflow_dialogues_ir.jsonl"
TRAIN_LIST = "ids_train_300_stratified.txt"
ID_LISTS = {TEST: "ids_dev_200_uniform.txt", DEV: "ids_dev_100_uniform.txt"}
TURN_FILES = {TRAIN: "train_300.jsonl", TEST: "dev_200.jsonl", DEV: "dev_100.jsonl", FULL: "dev_all.jsonl"}
SUBSTITUTE_IDS = Path(__file__).with_name("train_300.txt")
EXPECTED_FILES = (
    f"Expected either {DIALOGUES}.gz with {ID_LISTS[TEST]} "
    f"(and {TRAIN_DIALOGUES}.gz with {TRAIN_LIST}, for the authors' training examples), "
    f"or {TURN_FILES[TRAIN]} with {TURN_FILES[TEST]}; the files may be in subfolders."
)


class SMCalFlow(Dataset):
    """The one domain of SMCalFlow."""

    name = NAME
    domains = (NAME,)
    folder = Path(__file__).parent
    optional_files = (DEV, FULL)

    def convert(self, source: Path) -> ConvertedFiles:
        """Convert the turns of a folder, and copy the files of the authors' grammar that it has."""
        folder = SourceFolder(source, self.sources)
        splits = folder.splits()
        converted = {name: to_jsonl(map(to_fields, turns)) for name, turns in splits.items()}
        converted[DATA_NOTES] = to_data_notes([training_note(splits[TRAIN], self.sources)])
        return ConvertedFiles({**converted, **folder.grammar()}, tuple(folder.notes))


SMCALFLOW = SMCalFlow()


def to_fields(turn: Turn) -> dict[str, str]:
    """Return the fields of a turn's example; the context only if there is one."""
    example = turn.example
    context = {"context": example.context} if example.context else {}
    return {"utterance": example.utterance, "program": example.program, **context}


def training_note(turns: tuple[Turn, ...], sources: Sources) -> str:
    """Return which training turns these are, by their ids: the authors', the substitute, or others."""
    ids = to_id_list(turns).encode("utf-8")
    authors = sources.checksums.get(TRAIN_LIST)
    if authors is not None and authors.matches(ids):
        return f"training examples: the authors' {len(turns)}"
    if ids == SUBSTITUTE_IDS.read_bytes():
        return f"training examples: substitute of {len(turns)} validation turns"
    return "training examples: neither the authors' nor the substitute"


class SourceFolder:
    """The SMCalFlow files in or below one folder; `notes` collects messages for the user while they are read."""

    def __init__(self, source: Path, sources: Sources) -> None:
        self.source = source
        self.sources = sources
        self.grammar_names = [f.path.name for f in sources.files if f.path.suffix in (".csv", ".scfg")]
        names = {DIALOGUES, TRAIN_DIALOGUES, TRAIN_LIST, *ID_LISTS.values(), *TURN_FILES.values()}
        self.found = find_files(source, {*names, *self.grammar_names})
        self.notes: list[str] = []

    def splits(self) -> dict[str, tuple[Turn, ...]]:
        """Return the turns of each stored file that can be made from this folder."""
        turn_files = [name for name in TURN_FILES.values() if name in self.found]
        if not self.found.keys() - set(self.grammar_names):
            raise DataUnavailable(f"{self.source} has no turns of {NAME}", EXPECTED_FILES)
        if turn_files and (dialogues := self.found.get(DIALOGUES) or self.found.get(TRAIN_DIALOGUES)):
            message = f"the published dialogues are also in {dialogues[0]}"
            hint = "Import from a folder that has either dialogues or single turns."
            raise DataError(message, self.found[turn_files[0]][0], hint=hint)
        splits, names = (self.from_turns(), TURN_FILES) if turn_files else (self.from_dialogues(), ID_LISTS)
        missing = [(name, split) for split, name in names.items() if split not in splits]
        self.notes += [f"not in {self.source}: {name}; {split} is not made" for name, split in missing]
        return splits

    def from_dialogues(self) -> dict[str, tuple[Turn, ...]]:
        """Select the splits from the published dialogues by the lists of turn ids."""
        turns = self.turns(DIALOGUES, read_dialogues)
        dialogues = self.path(DIALOGUES)
        splits = {TRAIN: self.training_turns(turns)}
        for split, name in ID_LISTS.items():
            if split == TEST or name in self.found:
                path = self.path(name)
                splits[split] = select(read_ids(self.text(name), path), path, turns, dialogues)
        return {**splits, FULL: without_training_dialogues(turns, splits[TRAIN])}

    def training_turns(self, validation: Mapping[str, Turn]) -> tuple[Turn, ...]:
        """Select the authors' training turns, or the substitute if this folder lacks one of their two files."""
        if missing := [name for name in (TRAIN_DIALOGUES, TRAIN_LIST) if name not in self.found]:
            self.notes.append(f"not in {self.source}: {', '.join(missing)}; training examples are a substitute")
            ids = read_ids(SUBSTITUTE_IDS.read_text(encoding="utf-8"), SUBSTITUTE_IDS)
            return select(ids, SUBSTITUTE_IDS, validation, self.path(DIALOGUES))
        path = self.path(TRAIN_LIST)
        ids = read_ids(self.text(TRAIN_LIST), path)
        turns = self.turns(TRAIN_DIALOGUES, partial(read_dialogues, ids=ids))
        return select(ids, path, turns, self.path(TRAIN_DIALOGUES))

    def from_turns(self) -> dict[str, tuple[Turn, ...]]:
        """Read each split from its file of single turns."""
        splits: dict[str, tuple[Turn, ...]] = {}
        official = {split: self.sources.checksums[name] for split, name in ID_LISTS.items()}
        for split, name in TURN_FILES.items():
            if split in (TRAIN, TEST) or name in self.found:
                turns = self.turns(name, read_turns)
                splits[split] = (
                    without_training_dialogues(turns, splits[TRAIN]) if split == FULL else tuple(turns.values())
                )
                ids = to_id_list(turns.values()).encode("utf-8")
                if split in official and not official[split].matches(ids):
                    self.notes.append(
                        f"{self.path(name)} has other turns than the official split; imported unchanged"
                    )
        return splits

    def turns(self, name: str, read: Callable[[Iterable[str], Path], Iterator[Turn]]) -> dict[str, Turn]:
        """Return the turns of a file by their ids, without those that have no utterance."""
        path = self.path(name)
        if not self.sources.is_published_file(path):
            self.notes.append(not_published(path))
        turns = index_turns(read(read_lines(path), path), path)
        nonempty = {turn.id: turn for turn in turns.values() if turn.example.utterance.strip()}
        if not nonempty:
            raise DataError("the file has none of the expected turns", path, hint=CHECK_FILE)
        if empty := len(turns) - len(nonempty):
            self.notes.append(f"{path}: skipped {empty} {'turn' if empty == 1 else 'turns'} without an utterance")
        return nonempty

    def grammar(self) -> dict[str, bytes]:
        """Return the files of the authors' grammar; of several with one name, the published one."""
        contents: dict[str, bytes] = {}
        for name in self.grammar_names:
            candidates = {path: read_bytes(path) for path in self.found.get(name, ())}
            published = [p for p, content in candidates.items() if self.sources.is_published(p, content)]
            if published:
                contents[name] = candidates[published[0]]
            elif candidates:
                path = self.path(name)
                contents[name] = candidates[path]
                self.notes.append(not_published(path))
        if missing := [name for name in self.grammar_names if name not in contents]:
            self.notes.append(f"not in {self.source}: {', '.join(missing)} (of the authors' grammar)")
        return {f"{GRAMMAR}/{name}": content for name, content in contents.items()}

    def text(self, name: str) -> str:
        """Return the text of a file, and note if it is not the published one."""
        path = self.path(name)
        content = read_bytes(path)
        if not self.sources.is_published(path, content):
            self.notes.append(not_published(path))
        return decode(content, path)

    def path(self, name: str) -> Path:
        """Return the only file of a name; raise `DataError` if there is none or more than one."""
        if name not in self.found:
            raise DataError(f"there is no {name} here", self.source, hint=EXPECTED_FILES)
        first, *others = self.found[name]
        if others:
            raise DataError(f"{name} is also in {first}", others[0], hint=ONLY_ONCE)
        return first


def find_files(source: Path, names: set[str]) -> Mapping[str, list[Path]]:
    """Return the files of these names in or below a folder; JSON lines may be compressed."""
    found: dict[str, list[Path]] = {}
    for path in sorted(source.rglob("*")):
        name = path.name.removesuffix(".gz") if path.name.endswith(".jsonl.gz") else path.name
        if name in names and os.path.isfile(path):
            found.setdefault(name, []).append(path)
    return found


def without_training_dialogues(turns: Mapping[str, Turn], training: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return the turns of the dialogues that have no training turn."""
    dialogues = {turn.dialogue for turn in training}
    return tuple(turn for turn in turns.values() if turn.dialogue not in dialogues)
