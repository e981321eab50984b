"""How many gold outputs a constraint admits, against constraints whose language is plain to see."""

from pathlib import Path
from typing import Any

import pytest

from fewparse import Domain, Example, load_domain
from fewparse.evaluate.gold_coverage import reachable
from fewparse.evaluate.metrics import Proportion
from fewparse.options import Options
from support.lamp_domain import lines

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
    (folder / "domain.toml").write_text(f'name = "lamps"\n{prompt}\n[constraint]\n{constraint}\n')
    (folder / "examples.jsonl").write_text(lines(EXAMPLES))
    for name, text in files:
        (folder / name).write_text(text)
    return load_domain(folder)


def reached(domain: Domain, *items: Example, **options: Any) -> int | None:
    found = reachable(domain, Options.resolve(domain, **options), items)
    assert found is None or found.items == len(items)
    return None if found is None else found.right


LAMP, RADIO, FAN = (Example("u", f"(on {device})") for device in ("lamp", "radio", "fan"))


@pytest.mark.parametrize("prompt", [LISP, CHATML])
def test_a_trie_admits_what_was_taught(prompt: str, tmp_path: Path) -> None:
    domain = make(tmp_path, 'kind = "trie"', prompt=prompt)
    assert reachable(domain, Options.resolve(domain), [LAMP, RADIO, LAMP]) == Proportion(2, 3)


def test_an_induced_grammar_admits_what_its_examples_make_up(tmp_path: Path) -> None:
    assert reached(make(tmp_path, 'kind = "induced"'), LAMP, FAN, Example("u", "(on)")) == 1


@pytest.mark.parametrize("prompt", [LISP, CHATML])
def test_a_grammar_admits_its_sentences_and_nothing_unfinished(prompt: str, tmp_path: Path) -> None:
    grammar = ("grammar.lark", 'start: "(on " ("lamp" | "radio") ")"\n')
    domain = make(tmp_path, 'kind = "grammar"', grammar, prompt=prompt)
    assert reached(domain, LAMP, RADIO, FAN, Example("u", "(on lamp"), Example("u", "(on lamp))")) == 2


def test_a_canonical_utterance_is_made_where_an_item_has_none(tmp_path: Path) -> None:
    domain = make(tmp_path, 'grammar = "grammar.scfg"', ("grammar.scfg", SCFG))
    said = Example("u", "(on fan)", "switch the radio on")
    unsaid = Example("u", "(on lamp)", "lamp on")
    assert reached(domain, LAMP, RADIO, FAN, target="canonical") == 2
    assert reached(domain, said, unsaid, target="canonical") == 1
    assert reached(domain, said, unsaid, target="program") == 1


def test_with_another_grammar_its_own_canonical_utterance_counts(tmp_path: Path) -> None:
    make(tmp_path, 'grammar = "grammar.scfg"', ("grammar.scfg", SCFG))
    (tmp_path / "other.scfg").write_text('start -> "lamp, on" , "(on lamp)"\n')
    domain = load_domain(tmp_path, grammar=tmp_path / "other.scfg")
    assert reached(domain, Example("u", "(on lamp)", "turn on the lamp"), RADIO, target="canonical") == 1


def test_what_may_be_copied_depends_on_the_utterance(tmp_path: Path) -> None:
    domain = make(tmp_path, 'grammar = "grammar.scfg"\ncopy = ["name"]', ("grammar.scfg", SCFG))
    items = [Example("please call it bo", "(name bo)"), Example("please call it al", "(name bo)")]
    assert reached(domain, *items, target="canonical") == 1
    assert reached(domain, *items, target="program") == 1
    assert reached(make(tmp_path, 'grammar = "grammar.scfg"'), *items, target="canonical") == 2


def test_where_nothing_is_constrained_nothing_is_said(tmp_path: Path) -> None:
    domain = make(tmp_path, 'kind = "trie"')
    assert reached(domain, LAMP, constrained=False) is None
    assert reached(make(tmp_path, 'kind = "none"'), LAMP) is None
