"""Domain folders for tests of the command line."""

from pathlib import Path

import pytest

from support.domain_files import write_domain

EXAMPLES = [
    {"utterance": "is the lamp on", "program": "maybe", "canonical": "it may be"},
    {"utterance": "is the radio on", "program": "maybe", "canonical": "it may be"},
]
SETTINGS = '[retrieve]\nexamples = 2\nretriever = "all"\n[search]\nwidth = 3\n'


@pytest.fixture(scope="session")
def yes_or_no(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A domain whose examples contradict its grammar: `maybe` instead of `yes` or `no`."""
    folder = tmp_path_factory.mktemp("domains") / "yes-or-no"
    settings = 'name = "yes-or-no"\n' + SETTINGS
    return write_domain(folder, settings, EXAMPLES, {"grammar.lark": 'start: "yes" | "no"\n'})


@pytest.fixture(scope="session")
def canonical(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A domain whose outputs are canonical utterances."""
    settings = 'name = "canonical"\ntarget = "canonical"\n[constraint]\nkind = "trie"\n'
    return write_domain(tmp_path_factory.mktemp("domains") / "canonical", settings + SETTINGS, EXAMPLES)
