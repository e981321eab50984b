"""Domain folders for tests of the command line."""

import json
from pathlib import Path

import pytest

EXAMPLES = [
    {"utterance": "is the lamp on", "program": "maybe", "canonical": "it may be"},
    {"utterance": "is the radio on", "program": "maybe", "canonical": "it may be"},
]
SETTINGS = '[retrieve]\nexamples = 2\nretriever = "all"\n[search]\nwidth = 3\n'


@pytest.fixture(scope="session")
def yes_or_no(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A domain whose examples contradict its grammar: `maybe` instead of `yes` or `no`."""
    folder = tmp_path_factory.mktemp("domains") / "yes-or-no"
    folder.mkdir()
    (folder / "domain.toml").write_text('name = "yes-or-no"\n' + SETTINGS)
    (folder / "grammar.lark").write_text('start: "yes" | "no"\n')
    (folder / "examples.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EXAMPLES))
    return folder


@pytest.fixture(scope="session")
def canonical(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A domain whose outputs are canonical utterances."""
    folder = tmp_path_factory.mktemp("domains") / "canonical"
    folder.mkdir()
    settings = 'name = "canonical"\ntarget = "canonical"\n[constraint]\nkind = "trie"\n'
    (folder / "domain.toml").write_text(settings + SETTINGS)
    (folder / "examples.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EXAMPLES))
    return folder
