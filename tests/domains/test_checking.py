"""`check_domain` finds what is wrong with a domain, says where, and finds nothing wrong with a right one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse.domains.check import Report, check_domain
from fewparse.domains.load import bundled_domains, load_domain
from fewparse.vocabulary import BYTES, Vocabulary
from support.adapters import provenance, write_adapter

SETTINGS = """
name = "lamps"
executor = "run.py:run"
[constraint]
grammar = "grammar.scfg"
copy = ["NOTE"]
"""
GRAMMAR = r"""
start -> "turn on the " device , "(on " device ")"
start -> "turn off the " device , "(off " device ")"
start -> "note \"" NOTE "\"" , "(note \"" NOTE "\")"
device -> "lamp"
device -> "radio"
NOTE -> /[a-z ]/
NOTE -> /[a-z ]/ NOTE
"""
EXECUTOR = """
def run(program):
    if "radio" in program:
        raise ValueError("there is no radio")
    return program
"""
EXAMPLES = [
    {"utterance": "lamp on please", "program": "(on lamp)"},
    {"utterance": "lamp off please", "program": "(off lamp)", "canonical": "turn off the lamp"},
    {"utterance": "remember buy milk today", "program": '(note "buy milk")'},
]
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A right domain, with what a test changes in it."""

    def build(
        *more: dict[str, str],
        held_out: tuple[dict[str, str], ...] = (),
        grammar: str = GRAMMAR,
        settings: str = SETTINGS,
    ) -> Path:
        (tmp_path / "domain.toml").write_text(settings)
        (tmp_path / "grammar.scfg").write_text(grammar)
        (tmp_path / "run.py").write_text(EXECUTOR)
        for name, examples in (("examples.jsonl", [*EXAMPLES, *more]), ("test.jsonl", held_out)):
            (tmp_path / name).write_text("".join(json.dumps(example) + "\n" for example in examples))
        return tmp_path

    return build


def report(folder: Path, vocabulary: Vocabulary | None = BYTES) -> Report:
    return check_domain(load_domain(folder), vocabulary)


def findings(folder: Path, vocabulary: Vocabulary | None = BYTES) -> list[tuple[str, str, str | None]]:
    return [(f.level, f.kind, f.location) for f in report(folder, vocabulary).findings]


def test_a_right_domain_passes_without_a_finding(make: Make) -> None:
    found = report(make(held_out=({"utterance": "off with the lamp", "program": "(off lamp)"},)))
    assert found.passed
    assert found.findings == ()
    assert found.checked == {"examples": 3, "held-out examples": 1}


@pytest.mark.parametrize("name", sorted(bundled_domains()))
def test_the_bundled_domains_pass_without_error_or_warning(name: str) -> None:
    found = check_domain(load_domain(name), BYTES)
    assert found.passed
    assert not [finding for finding in found.findings if finding.level == "warning"]


def test_a_program_that_is_not_derived_is_shown_with_a_caret_where_it_goes_wrong(make: Make) -> None:
    folder = make({"utterance": "lamp up", "program": "(up lamp)"})
    (finding,) = report(folder).findings
    assert (finding.level, finding.kind, finding.location) == ("error", "ill-formed", "examples.jsonl:4")
    reason, line, mark = finding.message.split("\n")
    assert reason.startswith("the program is not derived from character 2 on; expected ")
    assert "'on '" in reason
    assert line[mark.index("^")] == "u"


def test_a_program_that_ends_too_early_says_so(make: Make) -> None:
    (finding,) = report(make({"utterance": "lamp", "program": "(on lamp"})).findings
    assert "the program ends too early; expected ')'" in finding.message


def test_a_canonical_utterance_must_be_derived_and_mean_its_program(make: Make) -> None:
    folder = make(
        {"utterance": "lamp 1", "program": "(on lamp)", "canonical": "switch on the lamp"},
        {"utterance": "lamp 2", "program": "(on lamp)", "canonical": "turn off the lamp"},
    )
    assert findings(folder) == [
        ("error", "ill-formed", "examples.jsonl:4"),
        ("error", "round trip", "examples.jsonl:5"),
    ]


def test_a_program_whose_canonical_comes_back_as_another_is_an_error(make: Make) -> None:
    lost = GRAMMAR + 'start -> "turn on the " device , "(so " device ")"\n'
    folder = make(
        {"utterance": "lamp so", "program": "(so lamp)"}, grammar=lost, settings=SETTINGS + 'scorer = "shortest"'
    )
    found = report(folder).findings
    assert [f.kind for f in found if f.level == "error"] == ["round trip"]
    assert '"turn on the lamp" is translated back to (on lamp), not to (so lamp)' in found[0].message


def test_a_canonical_utterance_that_is_not_the_shortest_for_its_program_is_warned_of(make: Make) -> None:
    longer = GRAMMAR + 'start -> "please turn on the " device , "(on " device ")"\n'
    given = {"utterance": "lamp 1", "program": "(on lamp)", "canonical": "please turn on the lamp"}
    (finding,) = report(make(given, grammar=longer)).findings
    assert (finding.level, finding.kind, finding.location) == ("warning", "round trip", "examples.jsonl:4")
    assert finding.message.startswith('"please turn on the lamp" is translated back to "turn on the lamp"')


def test_ambiguity_is_noted_with_the_worst_case(make: Make) -> None:
    ambiguous = GRAMMAR + 'start -> "turn " way " the lamp" , "(" way " lamp)"\nway -> "on"\n'
    found = [f for f in report(make(grammar=ambiguous)).findings if f.kind == "ambiguity"]
    assert {f.level for f in found} == {"note"}
    assert [f.message for f in found] == [
        "program side: 1 of 3 have several derivations; most, 2: (on lamp)",
        "utterance side: 1 of 3 have several derivations; most, 2: turn on the lamp",
    ]


def test_text_that_is_not_in_the_utterance_is_out_of_reach_and_warned_of(make: Make) -> None:
    folder = make(
        {"utterance": "remember the milk", "program": '(note "buy milk")'},
        {"utterance": "remember milkshake", "program": '(note "milk")'},
    )
    assert findings(folder) == [("warning", "copy", "examples.jsonl:4"), ("warning", "copy", "examples.jsonl:5")]
    assert report(folder).passed


def test_an_utterance_in_both_sets_is_a_leak_whatever_its_case_and_marks(make: Make) -> None:
    folder = make(held_out=({"utterance": "Lamp ON, please!", "program": "(on lamp)"},))
    assert findings(folder) == [("error", "leak", "examples.jsonl:1, test.jsonl:1")]


def test_the_same_words_after_something_else_was_said_are_another_utterance(make: Make) -> None:
    asked = {"utterance": "lamp on please", "program": "(on lamp)", "context": "what now?"}
    assert findings(make(held_out=(asked,))) == []
    assert findings(make(asked, held_out=(asked,))) == [("error", "leak", "examples.jsonl:4, test.jsonl:1")]


def test_repeated_and_contradicting_examples_are_warned_of(make: Make) -> None:
    folder = make(EXAMPLES[0], {"utterance": "lamp off please", "program": "(on lamp)"})
    assert findings(folder) == [
        ("warning", "duplicate", "examples.jsonl:1, examples.jsonl:4"),
        ("warning", "contradiction", "examples.jsonl:2, examples.jsonl:5"),
    ]


def test_a_program_that_does_not_execute_is_an_error(make: Make) -> None:
    (finding,) = report(make({"utterance": "radio on", "program": "(on radio)"})).findings
    assert (finding.level, finding.kind) == ("error", "execution")
    assert finding.message == "(on radio) fails: there is no radio"


def test_what_the_models_tokens_cannot_spell_is_found(make: Make) -> None:
    without_m = Vocabulary([token for token in BYTES.tokens if token != b"m"])
    folder = make()
    assert findings(folder, None) == []
    found = findings(folder, without_m)
    assert ("warning", "vocabulary", None) in found
    assert [place for level, _, place in found if level == "error"] == [
        "examples.jsonl:1",
        "examples.jsonl:2",
        "examples.jsonl:2",
        "examples.jsonl:3",
    ]


def test_useless_rules_are_warned_of(make: Make) -> None:
    useless = GRAMMAR + 'start -> ghost\nloop -> "a" loop\nisland -> "b"\n'
    kinds = [(f.kind, f.level) for f in report(make(grammar=useless)).findings]
    assert kinds == [(kind, "warning") for kind in ("undefined", "unproductive", "unreachable")] * 2


def test_a_domain_without_a_grammar_is_checked_as_far_as_it_goes(make: Make) -> None:
    folder = make(EXAMPLES[0], settings='name = "lamps"\n[constraint]\nkind = "trie"\n')
    assert findings(folder) == [("warning", "duplicate", "examples.jsonl:1, examples.jsonl:4")]


def test_an_adapter_is_stale_once_the_examples_are_others(make: Make) -> None:
    folder = make()
    taught = load_domain(folder).data_sha256("program")
    path = write_adapter(folder / "adapter-program.gguf", provenance=provenance(data_sha256=taught))
    assert findings(folder) == []
    make({"utterance": "please, lamp on", "program": "(on lamp)"})
    (finding,) = report(folder).findings
    assert (finding.level, finding.kind, finding.location) == ("warning", "adapter", path.name)
    assert "--target program" in finding.message


def test_an_adapter_that_cannot_be_read_is_an_error(make: Make) -> None:
    folder = make()
    (folder / "adapter-canonical.gguf").write_bytes(b"GGUF")
    assert findings(folder) == [("error", "adapter", "adapter-canonical.gguf")]
