"""Write SMCalFlow files in both formats: published dialogues with lists of turn ids, and single turns."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

import pytest

from fewparse.datasets.checksum import Checksum
from fewparse.datasets.dataset import PublishedFile, Sources, mirror_variable
from fewparse.datasets.smcalflow.dataset import SMCALFLOW as DATASET
from support.data import SMCALFLOW

REAL = SMCALFLOW
DIALOGUES = "valid.dataflow_dialogues_ir.jsonl.gz"
TEST_LIST, DEV_LIST = "ids_dev_200_uniform.txt", "ids_dev_100_uniform.txt"
TRAIN_DIALOGUES, TRAIN_LIST = "train.dataflow_dialogues_ir.jsonl.gz", "ids_train_300_stratified.txt"
OPTIONAL = (TRAIN_DIALOGUES, TRAIN_LIST)
TABLES = ("types.csv", "specialTypes.csv", "templates.csv")
RULES = ("entities.scfg", "enum_wrappers.scfg", "enums.scfg", "fluenter.scfg", "quoted.scfg", "start.scfg")
needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="the SMCalFlow dataset was not found: set FEWPARSE_DATA"
)


@dataclass(frozen=True)
class TurnRow:
    """One turn; `answer` is the agent's reply."""

    dialogue: str
    index: int
    utterance: str
    program: str
    context: str = ""
    answer: str = "bye"
    skip: bool = False

    @property
    def id(self) -> str:
        return f"{self.dialogue},{self.index}"


def to_turn_lines(turns: Iterable[TurnRow]) -> bytes:
    """Write single turns, one per line."""
    rows = (
        {"dialogue_id": t.dialogue, "turn_index": t.index, "context": t.context, "utterance": t.utterance}
        | {"program": t.program, "canonical": None}
        for t in turns
        if not t.skip
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def to_dialogue_lines(turns: Iterable[TurnRow]) -> bytes:
    """Write published dialogues, one per line."""
    dialogues = (
        {"dialogue_id": name, "turns": [to_published_turn(turn) for turn in members]}
        for name, members in groupby(turns, lambda turn: turn.dialogue)
    )
    return "".join(json.dumps(dialogue) + "\n" for dialogue in dialogues).encode()


def to_published_turn(turn: TurnRow) -> dict[str, Any]:
    return {
        "turn_index": turn.index,
        "user_utterance": {"original_text": turn.utterance, "tokens": turn.utterance.split()},
        "agent_utterance": {"original_text": turn.answer, "tokens": [], "described_entities": []},
        "lispress": turn.program,
        "skip": turn.skip,
        "program_execution_oracle": {"has_exception": False, "refer_are_correct": True},
    }


def to_id_list(turns: Iterable[TurnRow]) -> bytes:
    return "".join(f"{turn.id}\n" for turn in turns).encode()


def real_rows(name: str) -> list[TurnRow]:
    """Read the turns of a real file; the agent's replies are not in it."""
    content = (REAL / name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    keys = ("dialogue_id", "turn_index", "utterance", "program", "context")
    return [TurnRow(*(json.loads(line)[key] for key in keys)) for line in text.split("\n") if line]


def add_skipped_turns(turns: Sequence[TurnRow]) -> list[TurnRow]:
    """Return the turns with replies from the context of the next turn, and a skipped turn in every gap."""
    complete: list[TurnRow] = []
    for turn in turns:
        before = complete[-1] if complete and complete[-1].dialogue == turn.dialogue else None
        if before and before.index == turn.index - 1:
            complete[-1] = TurnRow(**{**vars(before), "answer": turn.context})
        elif turn.index > 0:
            complete.append(TurnRow(turn.dialogue, turn.index - 1, "okay", "(", answer=turn.context, skip=True))
        complete.append(turn)
    return complete


def git_blob(content: bytes) -> Checksum:
    """Return the id of a git blob, as `git hash-object` prints it."""
    return Checksum("git blob id", hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest())


def publish(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Replace the published files by these; returns them by their URL paths on a mirror.

    The files of the training set are known by their git blobs and are optional.
    """
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(mirror_variable("smcalflow"), raising=False)
    paths = {name: PurePosixPath("some") / "folder" / name for name in files}
    table = tuple(
        PublishedFile(paths[name], len(content), Checksum.of(content))
        if name not in OPTIONAL
        else PublishedFile(paths[name], None, git_blob(content), optional=True)
        for name, content in files.items()
    )
    monkeypatch.setattr(DATASET, "sources", Sources("http://127.0.0.1:9", table))
    return {f"/mirror/{paths[name]}": content for name, content in files.items()}
