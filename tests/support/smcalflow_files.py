"""Files in the two forms in which SMCalFlow comes: published dialogues with lists of turns, and single turns."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

import pytest

from fewparse.datasets.published import Published, Sources, mirror_variable
from fewparse.datasets.smcalflow import dataset as smcalflow
from support.data import SMCALFLOW

REAL = SMCALFLOW
DIALOGUES = "valid.dataflow_dialogues_ir.jsonl.gz"
TEST_LIST, DEV_LIST = "ids_dev_200_uniform.txt", "ids_dev_100_uniform.txt"
TABLES = ("types.csv", "specialTypes.csv", "templates.csv")
RULES = ("entities.scfg", "enum_wrappers.scfg", "enums.scfg", "fluenter.scfg", "quoted.scfg", "start.scfg")
needs_real_data = pytest.mark.skipif(not REAL.is_dir(), reason="the SMCalFlow data is not on this machine")


@dataclass(frozen=True)
class Said:
    """One turn; `answer` is what the agent says to it."""

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


def turn_form(turns: Iterable[Said]) -> bytes:
    """Single turns, one a line."""
    rows = (
        {"dialogue_id": t.dialogue, "turn_index": t.index, "context": t.context, "utterance": t.utterance}
        | {"program": t.program, "canonical": None}
        for t in turns
        if not t.skip
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def dialogue_form(turns: Iterable[Said]) -> bytes:
    """The same as published dialogues, one a line."""
    dialogues = (
        {"dialogue_id": name, "turns": [published_turn(turn) for turn in members]}
        for name, members in groupby(turns, lambda turn: turn.dialogue)
    )
    return "".join(json.dumps(dialogue) + "\n" for dialogue in dialogues).encode()


def published_turn(turn: Said) -> dict[str, Any]:
    return {
        "turn_index": turn.index,
        "user_utterance": {"original_text": turn.utterance, "tokens": turn.utterance.split()},
        "agent_utterance": {"original_text": turn.answer, "tokens": [], "described_entities": []},
        "lispress": turn.program,
        "skip": turn.skip,
        "program_execution_oracle": {"has_exception": False, "refer_are_correct": True},
    }


def list_of(turns: Iterable[Said]) -> bytes:
    return "".join(f"{turn.id}\n" for turn in turns).encode()


def real_rows(name: str) -> list[Said]:
    """The turns of a real file. What the agent answers is known from the turn that follows, if one does."""
    content = (REAL / name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    keys = ("dialogue_id", "turn_index", "utterance", "program", "context")
    return [Said(*(json.loads(line)[key] for key in keys)) for line in text.split("\n") if line]


def with_skipped(turns: Sequence[Said]) -> list[Said]:
    """The dialogues of these turns, with a turn to be skipped wherever one is missing before another."""
    whole: list[Said] = []
    for turn in turns:
        before = whole[-1] if whole and whole[-1].dialogue == turn.dialogue else None
        if before and before.index == turn.index - 1:
            whole[-1] = Said(**{**vars(before), "answer": turn.context})
        elif turn.index > 0:
            whole.append(Said(turn.dialogue, turn.index - 1, "okay", "(", answer=turn.context, skip=True))
        whole.append(turn)
    return whole


def publish(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Have the table of sources describe these files; they are given by their addresses on a mirror."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(mirror_variable("smcalflow"), raising=False)
    paths = {name: PurePosixPath("some") / "folder" / name for name in files}
    table = tuple(
        Published(paths[name], len(content), hashlib.sha256(content).hexdigest())
        for name, content in files.items()
    )
    monkeypatch.setattr(smcalflow, "read_sources", lambda _: Sources("http://127.0.0.1:9", table))
    return {f"/mirror/{paths[name]}": content for name, content in files.items()}
