"""Gold coverage of constraints with small known languages."""

from pathlib import Path
from typing import Any

import pytest

from fewparse import Domain, Example, load_domain
from fewparse.evaluate.gold_coverage import gold_coverage
from fewparse.evaluate.metrics import Proportion
from fewparse.options import Options
from support.domain_files import write_domain

SCFG = """\
start -> "turn on the " device | "switch the " device " on" , "(on " device ")"
start -> "call it " name , "(name " name ")"
device -> "lamp" , "lamp"
device -> "radio" , "radio"
name -> letter , letter
name -> letter name , letter name
letter -> /[a-z]/
"""
EXAMPLES = [
    {"utterance": "light please", "program": "(on lamp)"},
    {"utterance": "it is bo", "program": "(name bo)"},
]
LISP, CHATML = 'prompt = "lisp"', 'prompt = "chatml"'


def make(folder: Path, constraint: str, *files: tuple[str, str], prompt: str = LISP) -> Domain:
    settings = f'name = "lamps"\n{prompt}\n[constraint]\n{constraint}\n'
    return load_domain(write_domain(folder, settings, EXAMPLES, dict(files)))


def covered(domain: Domain, *items: Example, **options: Any) -> int | None:
    coverage = gold_coverage(domain, Options.resolve(domain, **options), items)
    assert coverage is None or coverage.items == len(items)
    return None if coverage is None else coverage.correct


LAMP, RADIO, FAN = (Example("u", f"(on {device})") for device in ("lamp", "radio", "fan"))


@pytest.mark.parametrize("prompt", [LISP, CHATML])
def test_a_trie_admits_the_outputs_of_examples(prompt: str, tmp_path: Path) -> None:
    domain = make(tmp_path, 'kind = "trie"', prompt=prompt)
    assert gold_coverage(domain, Options.resolve(domain), [LAMP, RADIO, LAMP]) == Proportion(2, 3)


def test_an_induced_grammar_admits_programs_like_its_examples(tmp_path: Path) -> None:
    assert covered(make(tmp_path, 'kind = "induced"'), LAMP, FAN, Example("u", "(on)")) == 1


@pytest.mark.parametrize("prompt", [LISP, CHATML])
def test_a_grammar_admits_complete_sentences_only(prompt: str, tmp_path: Path) -> None:
    grammar = ("grammar.lark", 'start: "(on " ("lamp" | "radio") ")"\n')
    domain = make(tmp_path, 'kind = "grammar"', grammar, prompt=prompt)
    assert covered(domain, LAMP, RADIO, FAN, Example("u", "(on lamp"), Example("u", "(on lamp))")) == 2


def test_the_canonical_utterance_of_an_item_without_one_is_generated(tmp_path: Path) -> None:
    domain = make(tmp_path, 'grammar = "grammar.scfg"', ("grammar.scfg", SCFG))
    grammatical = Example("u", "(on fan)", "switch the radio on")
    ungrammatical = Example("u", "(on lamp)", "lamp on")
    assert covered(domain, LAMP, RADIO, FAN, target="canonical") == 2
    assert covered(domain, grammatical, ungrammatical, target="canonical") == 1
    assert covered(domain, grammatical, ungrammatical, target="program") == 1


def test_another_grammar_has_its_own_canonical_utterances(tmp_path: Path) -> None:
    make(tmp_path, 'grammar = "grammar.scfg"', ("grammar.scfg", SCFG))
    (tmp_path / "other.scfg").write_text('start -> "lamp, on" , "(on lamp)"\n')
    domain = load_domain(tmp_path, grammar=tmp_path / "other.scfg")
    assert covered(domain, Example("u", "(on lamp)", "turn on the lamp"), RADIO, target="canonical") == 1


def test_copied_text_must_be_in_the_utterance(tmp_path: Path) -> None:
    domain = make(tmp_path, 'grammar = "grammar.scfg"\ncopy = ["name"]', ("grammar.scfg", SCFG))
    items = [Example("please call it bo", "(name bo)"), Example("please call it al", "(name bo)")]
    assert covered(domain, *items, target="canonical") == 1
    assert covered(domain, *items, target="program") == 1
    assert covered(make(tmp_path, 'grammar = "grammar.scfg"'), *items, target="canonical") == 2


def test_without_a_constraint_there_is_no_coverage(tmp_path: Path) -> None:
    domain = make(tmp_path, 'kind = "trie"')
    assert covered(domain, LAMP, constrained=False) is None
    assert covered(make(tmp_path, 'kind = "none"'), LAMP) is None
