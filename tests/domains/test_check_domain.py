"""`check_domain` reports each mistake of a domain with its location, and nothing for a correct domain."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse.domains.check import Report, check_domain
from fewparse.domains.load import bundled_domains, load_domain
from fewparse.vocabulary import BYTES, Vocabulary
from support.adapters import provenance, write_adapter
from support.domain_files import to_json_lines, write_domain

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
    """A function that writes a correct domain with the given changes."""

    def build(
        *more: dict[str, str],
        held_out: tuple[dict[str, str], ...] = (),
        grammar: str = GRAMMAR,
        settings: str = SETTINGS,
    ) -> Path:
        files = {"grammar.scfg": grammar, "run.py": EXECUTOR, "test.jsonl": to_json_lines(held_out)}
        return write_domain(tmp_path, settings, [*EXAMPLES, *more], files)

    return build


def report(folder: Path, vocabulary: Vocabulary | None = BYTES) -> Report:
    return check_domain(load_domain(folder), vocabulary)


def findings(folder: Path, vocabulary: Vocabulary | None = BYTES) -> list[tuple[str, str, str | None]]:
    return [(f.level, f.kind, f.location) for f in report(folder, vocabulary).findings]


def test_a_correct_domain_passes_without_findings(make: Make) -> None:
    found = report(make(held_out=({"utterance": "off with the lamp", "program": "(off lamp)"},)))
    assert found.passed
    assert found.findings == ()
    assert found.checked == {"examples": 3, "held-out examples": 1}


@pytest.mark.parametrize("name", sorted(bundled_domains()))
def test_the_bundled_domains_pass_without_error_or_warning(name: str) -> None:
    found = check_domain(load_domain(name), BYTES)
    assert found.passed
    assert not [finding for finding in found.findings if finding.level == "warning"]


def test_an_underivable_program_is_shown_with_a_caret_at_the_failure(make: Make) -> None:
    folder = make({"utterance": "lamp up", "program": "(up lamp)"})
    (finding,) = report(folder).findings
    assert (finding.level, finding.kind, finding.location) == ("error", "ill-formed", "examples.jsonl:4")
    reason, line, mark = finding.message.split("\n")
    assert reason.startswith("the program is not derived from character 2 on; expected ")
    assert "'on '" in reason
    assert line[mark.index("^")] == "u"


def test_a_truncated_program_is_reported(make: Make) -> None:
    (finding,) = report(make({"utterance": "lamp", "program": "(on lamp"})).findings
    assert "the program ends too early; expected ')'" in finding.message


def test_a_canonical_utterance_must_be_derivable_and_translate_to_its_program(make: Make) -> None:
    folder = make(
        {"utterance": "lamp 1", "program": "(on lamp)", "canonical": "switch on the lamp"},
        {"utterance": "lamp 2", "program": "(on lamp)", "canonical": "turn off the lamp"},
    )
    assert findings(folder) == [
        ("error", "ill-formed", "examples.jsonl:4"),
        ("error", "round trip", "examples.jsonl:5"),
    ]


def test_a_program_without_a_round_trip_is_an_error(make: Make) -> None:
    ambiguous = GRAMMAR + 'start -> "turn on the " device , "(so " device ")"\n'
    folder = make(
        {"utterance": "lamp so", "program": "(so lamp)"},
        grammar=ambiguous,
        settings=SETTINGS + 'scorer = "shortest"',
    )
    found = report(folder).findings
    assert [f.kind for f in found if f.level == "error"] == ["round trip"]
    assert '"turn on the lamp" is translated back to (on lamp), not to (so lamp)' in found[0].message


def test_a_canonical_utterance_that_is_not_the_shortest_is_a_warning(make: Make) -> None:
    longer = GRAMMAR + 'start -> "please turn on the " device , "(on " device ")"\n'
    given = {"utterance": "lamp 1", "program": "(on lamp)", "canonical": "please turn on the lamp"}
    (finding,) = report(make(given, grammar=longer)).findings
    assert (finding.level, finding.kind, finding.location) == ("warning", "round trip", "examples.jsonl:4")
    assert finding.message.startswith('"please turn on the lamp" is translated back to "turn on the lamp"')


def test_ambiguity_is_a_note_with_the_worst_case(make: Make) -> None:
    ambiguous = GRAMMAR + 'start -> "turn " way " the lamp" , "(" way " lamp)"\nway -> "on"\n'
    found = [f for f in report(make(grammar=ambiguous)).findings if f.kind == "ambiguity"]
    assert {f.level for f in found} == {"note"}
    assert [f.message for f in found] == [
        "program side: 1 of 3 have several derivations; most, 2: (on lamp)",
        "utterance side: 1 of 3 have several derivations; most, 2: turn on the lamp",
    ]


def test_text_that_cannot_be_copied_from_the_utterance_is_a_warning(make: Make) -> None:
    folder = make(
        {"utterance": "remember the milk", "program": '(note "buy milk")'},
        {"utterance": "remember milkshake", "program": '(note "milk")'},
    )
    assert findings(folder) == [("warning", "copy", "examples.jsonl:4"), ("warning", "copy", "examples.jsonl:5")]
    assert report(folder).passed


def test_an_utterance_in_both_splits_is_a_leak_ignoring_case_and_punctuation(make: Make) -> None:
    folder = make(held_out=({"utterance": "Lamp ON, please!", "program": "(on lamp)"},))
    assert findings(folder) == [("error", "leak", "examples.jsonl:1, test.jsonl:1")]


def test_the_same_utterance_with_another_context_is_not_a_leak(make: Make) -> None:
    with_context = {"utterance": "lamp on please", "program": "(on lamp)", "context": "what now?"}
    assert findings(make(held_out=(with_context,))) == []
    assert findings(make(with_context, held_out=(with_context,))) == [
        ("error", "leak", "examples.jsonl:4, test.jsonl:1")
    ]


def test_duplicate_and_contradicting_examples_are_warnings(make: Make) -> None:
    folder = make(EXAMPLES[0], {"utterance": "lamp off please", "program": "(on lamp)"})
    assert findings(folder) == [
        ("warning", "duplicate", "examples.jsonl:1, examples.jsonl:4"),
        ("warning", "contradiction", "examples.jsonl:2, examples.jsonl:5"),
    ]


def test_a_program_that_does_not_execute_is_an_error(make: Make) -> None:
    (finding,) = report(make({"utterance": "radio on", "program": "(on radio)"})).findings
    assert (finding.level, finding.kind) == ("error", "execution")
    assert finding.message == "(on radio) fails: there is no radio"


def test_text_that_the_vocabulary_cannot_spell_is_reported(make: Make) -> None:
    without_m = Vocabulary([token for token in BYTES.tokens if token != b"m"])
    folder = make()
    assert findings(folder, None) == []
    found = findings(folder, without_m)
    assert ("warning", "vocabulary", None) in found
    assert [location for level, _, location in found if level == "error"] == [
        "examples.jsonl:1",
        "examples.jsonl:2",
        "examples.jsonl:2",
        "examples.jsonl:3",
    ]


def test_useless_rules_are_warnings(make: Make) -> None:
    useless = GRAMMAR + 'loop -> "a" loop\nisland -> "b"\n'
    kinds = [(f.kind, f.level) for f in report(make(grammar=useless)).findings]
    assert kinds == [(kind, "warning") for kind in ("unproductive", "unreachable")] * 2


def test_a_domain_without_a_grammar_gets_the_other_checks(make: Make) -> None:
    folder = make(EXAMPLES[0], settings='name = "lamps"\n[constraint]\nkind = "trie"\n')
    assert findings(folder) == [("warning", "duplicate", "examples.jsonl:1, examples.jsonl:4")]


def test_an_adapter_is_stale_after_a_change_of_the_examples(make: Make) -> None:
    folder = make()
    sha256 = load_domain(folder).data_sha256("program")
    tuned = provenance(domain="lamps", data_sha256=sha256)
    path = write_adapter(folder / "adapter-program.gguf", provenance=tuned)
    assert findings(folder) == []
    make({"utterance": "please, lamp on", "program": "(on lamp)"})
    (finding,) = report(folder).findings
    assert (finding.level, finding.kind, finding.location) == ("warning", "adapter", path.name)
    assert "--target program" in finding.message


def test_an_adapter_for_another_grammar_is_not_used_which_is_a_warning(make: Make) -> None:
    folder = make()
    write_adapter(folder / "adapter-program.gguf", provenance=provenance(outputs_sha256="2" * 64))
    (finding,) = report(folder).findings
    assert (finding.level, finding.kind) == ("warning", "adapter")
    assert finding.message.startswith(
        f"it is not used, because it was tuned for another grammar: fewparse tune {folder}"
    )


def test_an_adapter_that_cannot_be_read_is_an_error(make: Make) -> None:
    folder = make()
    (folder / "adapter-canonical.gguf").write_bytes(b"GGUF")
    assert findings(folder) == [("error", "adapter", "adapter-canonical.gguf")]
