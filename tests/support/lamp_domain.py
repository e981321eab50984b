"""A domain small enough to evaluate in a second, and systems with fixed predictions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fewparse import Candidate, Domain, Example, Usage, load_domain
from fewparse.evaluate.system import Prediction
from support.domain_files import to_json_lines, write_domain

SETTINGS = """\
name = "lamps"
target = "canonical"
executor = "executor.py:execute"
pool = 3
[retrieve]
examples = 2
retriever = "bm25"
[constraint]
kind = "trie"
strings = "language.jsonl"
[search]
width = 3
max_tokens = 16
rerank = 1.0
"""
EXECUTOR = """\
def execute(program):
    if "fan" in program:
        raise ValueError("there is no fan here")
    return program.upper().replace("LIGHT", "LAMP")
"""
TRAINING = ["(on lamp)", "(off lamp)", "(on radio)", "(off radio)"]
OUTPUTS = [f"({state} {device})" for device in ("lamp", "light", "radio", "fan") for state in ("on", "off")]
TEST = ["(on lamp)", "(off radio)"]


def canonical(program: str) -> str:
    return f"switch {words(program)}"


def words(program: str) -> str:
    return program.strip("()")


def make_lamps(folder: Path) -> Domain:
    """Write the domain to a folder and load it."""
    outputs = [{"program": p, "canonical": canonical(p)} for p in OUTPUTS]
    examples = [{"utterance": f"{words(p)} please", "program": p, "canonical": canonical(p)} for p in TRAINING]
    test = [{"utterance": f"i want it {words(p)}", "program": p, "canonical": canonical(p)} for p in TEST]
    files = {
        "executor.py": EXECUTOR,
        "language.jsonl": to_json_lines(outputs),
        "test.jsonl": to_json_lines(test),
    }
    return load_domain(write_domain(folder, SETTINGS, examples, files))


class FixedSystem:
    """Predicts the same programs for every item, and records its inputs."""

    max_concurrency: int | None = None

    def __init__(self, name: str, *ranked: tuple[str | None, float, float], note: str = "") -> None:
        self.name = name
        self._ranked = ranked
        self._note = note
        self.utterances: list[str] = []
        self.hidden: list[list[str]] = []

    @property
    def settings(self) -> dict[str, Any]:
        return {"ranked": self._ranked, "note": self._note}

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        self.utterances.append(item.utterance)
        self.hidden.append([example.utterance for example in without])
        candidates = (Candidate(str(p), score, p, model_score) for p, score, model_score in self._ranked)
        return Prediction(tuple(candidates), Usage(requests=2, forward_tokens=7), 0.5, 1.5, examples_dropped=3)


class RemoteSystem:
    """Echoes the utterance like a model on a server, several at the same time; `behave` is called first."""

    def __init__(
        self,
        max_concurrency: int = 1,
        behave: Callable[[str], object] = lambda utterance: None,
        usage: Usage | None = None,
        name: str = "remote",
    ) -> None:
        self.name = name
        self.max_concurrency = max_concurrency
        self._behave = behave
        self._usage = usage or Usage(requests=1)
        self.utterances: list[str] = []

    @property
    def settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        self.utterances.append(item.utterance)
        self._behave(item.utterance)
        return Prediction((Candidate(item.utterance, 0.0, item.program, 0.0),), replace(self._usage), 0.5)


def numbered(count: int) -> list[Example]:
    return [Example(str(number), "(on lamp)") for number in range(count)]
