"""`fewparse grammar` and `fewparse check`."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from lark import Lark

from fewparse.cli.domain import make_domain
from fewparse.domains.load import load_domain
from support.cli_runner import CommandResult, fewparse

PROGRAM = "(list (meetings (with me Maria) (on next-week)))"
CANONICAL = "list my meetings with Maria next week"
LAMPS = r"""
# A lamp, with two utterances.
start -> " turn on the " device | " switch the " device " on" , " (on " device ")"
start -> " wrap " start , " (do" start ")"
start -> " just" start , start
device -> "lamp"
device -> "lamp" , "light"
"""


@pytest.fixture
def lamps(tmp_path: Path) -> str:
    path = tmp_path / "lamps.scfg"
    path.write_text(LAMPS)
    return str(path)


def json_lines(ended: CommandResult) -> list[dict[str, Any]]:
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_translate_prints_one_object_per_line_in_both_directions() -> None:
    (there,) = json_lines(fewparse("grammar", "translate", "calendar", "--to", "utterance", stdin=PROGRAM + "\n"))
    assert there == {"input": PROGRAM, "output": CANONICAL, "alternatives": [], "derivations": 1, "error": None}
    (back,) = json_lines(fewparse("grammar", "translate", "calendar", "--to", "program", stdin=CANONICAL))
    assert back == {"input": CANONICAL, "output": PROGRAM, "alternatives": [], "derivations": 1, "error": None}


def test_lines_are_translated_unchanged_and_none_is_lost(lamps: str) -> None:
    given = b" turn on the lamp\nturn on the lamp\n\n turn on the lamp \n\xff\xfe\n turn on the lamp"
    found = json_lines(fewparse("grammar", "translate", lamps, "--to", "program", stdin=given))
    assert [line["output"] for line in found] == [" (on lamp)", None, None, None, None, " (on lamp)"]
    assert [line["input"] for line in found][:4] == given.decode(errors="replace").split("\n")[:4]
    assert found[0]["alternatives"] == [" (on light)"]
    assert found[1]["error"].startswith("is not derived from character 1 on; expected ")
    assert found[2]["error"].startswith("ends too early; expected ")
    assert "UTF-8" in found[4]["error"]
    assert found[1]["derivations"] == 0


def test_utterances_are_ordered_by_length(lamps: str) -> None:
    (found,) = json_lines(fewparse("grammar", "translate", lamps, "--to", "utterance", stdin=" (on lamp)"))
    assert found["output"] == " turn on the lamp"
    assert found["alternatives"][:2] == [" switch the lamp on", " just turn on the lamp"]
    assert found["derivations"] is None


def test_the_number_of_alternatives_is_as_requested(lamps: str) -> None:
    for requested in (0, 1, 3):
        (found,) = json_lines(
            fewparse(
                "grammar",
                "translate",
                lamps,
                "--to",
                "utterance",
                "--alternatives",
                str(requested),
                stdin=" (on lamp)",
            )
        )
        assert len(found["alternatives"]) == requested


def test_programs_to_learn_from_determine_the_best_translation(lamps: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs.txt"
    programs.write_text(" (on light)\n" * 3)
    (found,) = json_lines(
        fewparse(
            "grammar", "translate", lamps, "--to", "program", "--learn", str(programs), stdin=" turn on the lamp"
        )
    )
    assert (found["output"], found["alternatives"]) == (" (on light)", [" (on lamp)"])
    rejected = fewparse("grammar", "translate", lamps, "--to", "program", "--scorer", "learned")
    assert rejected.code == 2
    assert "--learn" in rejected.err


def test_sample_prints_the_same_pairs_for_the_same_seed_and_they_translate() -> None:
    first = fewparse("grammar", "render", "calendar", "-n", "5", "--seed", "3")
    assert first == fewparse("grammar", "render", "calendar", "-n", "5", "--seed", "3")
    assert first.out != fewparse("grammar", "render", "calendar", "-n", "5", "--seed", "4").out
    pairs = json_lines(first)
    assert len(pairs) == 5
    given = "\n".join(pair["utterance"] for pair in pairs)
    back = json_lines(fewparse("grammar", "translate", "calendar", "--to", "program", stdin=given))
    assert [line["output"] for line in back] == [pair["program"] for pair in pairs]


def test_lark_parses_with_an_exported_side() -> None:
    for side, text in (("program", PROGRAM), ("utterance", CANONICAL)):
        exported = fewparse("grammar", "export", "calendar", "--side", side, "--as", "lark")
        assert exported.code == 0
        assert Lark(exported.out, parser="earley", lexer="dynamic_complete").parse(text)


def test_an_exported_grammar_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "again.lark"
    path.write_text(fewparse("grammar", "export", "calendar", "--as", "lark").out)
    assert fewparse("grammar", "check", str(path)).out == "passed\n"


def test_gbnf_has_a_root() -> None:
    exported = fewparse("grammar", "export", "calendar", "--side", "utterance", "--as", "gbnf")
    assert exported.code == 0
    assert exported.out.startswith("root ::= ")


def test_a_tree_is_printed_or_drawn_to_a_file(tmp_path: Path) -> None:
    shown = fewparse("grammar", "tree", "calendar", CANONICAL, "--side", "utterance")
    assert shown.code == 0
    assert "Maria" in shown.out
    picture = tmp_path / "tree.svg"
    assert fewparse("grammar", "tree", "calendar", PROGRAM, "--svg", str(picture)).code == 0
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_tree_of_a_text_that_is_not_derived_shows_the_position_of_the_error() -> None:
    ended = fewparse("grammar", "tree", "calendar", "(list (meetngs))")
    assert ended.code == 1
    message, line, mark = ended.err.rstrip("\n").split("\n")
    assert message.startswith("error: the text is not derived from character 12 on; expected ")
    assert line[mark.index("^") :] == "ngs))"


def test_a_tree_of_a_plain_grammar(tmp_path: Path) -> None:
    path = tmp_path / "plain.lark"
    path.write_text('start: "a" start | "b"\n')
    assert fewparse("grammar", "tree", str(path), "aab").out.count("start") == 3
    rejected = fewparse("grammar", "tree", str(path), "b", "--side", "utterance")
    assert rejected.code == 2
    assert "no utterances" in rejected.err


def test_stats_count_rules_and_the_derivations_of_lines(lamps: str) -> None:
    shown = fewparse("grammar", "stats", lamps, "--lines", "--side", "program", stdin=" (on lamp)\n (no lamp)\n")
    assert shown.code == 0
    assert shown.out.startswith("5 rules, 6 utterance patterns")
    assert "1 derived, 1 not derived" in shown.out
    value = json.loads(fewparse("grammar", "stats", lamps, "--json").out)
    assert value["rules"] == 5
    assert value["sides"]["program"]["cycles"] == [["start"]]


def test_induce_prints_a_grammar_and_its_coverage(tmp_path: Path) -> None:
    domain = load_domain("calendar")
    held_out = str(domain.folder / "test.jsonl")
    ended = fewparse("grammar", "induce", "calendar", "--merge", "typed", "--held-out", held_out)
    assert ended.code == 0
    assert "738 programs" in ended.err
    assert "of 80 held-out programs" in ended.err
    path = tmp_path / "induced.lark"
    path.write_text(ended.out)
    (tree,) = [fewparse("grammar", "tree", str(path), domain.examples[0].program)]
    assert tree.code == 0


def test_check_passes_on_a_correct_domain_and_counts_its_examples() -> None:
    ended = fewparse("check", "calendar")
    assert ended.code == 0
    assert ended.out.startswith("calendar: passed (738 examples, 80 held-out examples)\n  target ")


def test_check_fails_on_a_leak_and_reports_it_in_json(tmp_path: Path) -> None:
    home = make_domain("home", tmp_path / "home")
    example = (home / "examples.jsonl").read_text().splitlines()[0]
    with (home / "test.jsonl").open("a") as file:
        file.write(example + "\n")
    ended = fewparse("check", str(home), "--json", "--model", "none")
    assert ended.code == 1
    value = json.loads(ended.out)
    assert not value["passed"]
    assert [finding["kind"] for finding in value["findings"] if finding["level"] == "error"] == ["leak"]


MISTAKES = {
    "no such grammar": (["calender"], 2, "unknown grammar 'calender'"),
    "an unknown suffix": (["rules.txt"], 2, "Rename it to .scfg or .lark"),
    "an empty folder": (["empty"], 1, "the folder has no .scfg file"),
    "a syntax error": (["wrong.scfg"], 1, "wrong.scfg:1:"),
    "a file that is not UTF-8": (["latin.scfg"], 1, "not UTF-8 text (byte 14)"),
    "nothing productive": (["endless.scfg"], 1, "the start symbol derives no text"),
    "a folder as lark": (["empty", "--dialect", "lark"], 2, "is a folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_with_a_hint(mistake: str, tmp_path: Path) -> None:
    (grammar, *options), code, message = MISTAKES[mistake]
    (tmp_path / "rules.txt").write_text("start: 'a'")
    (tmp_path / "empty").mkdir()
    (tmp_path / "wrong.scfg").write_text('start -> "a" | "b"\n')
    (tmp_path / "latin.scfg").write_bytes(b'start -> "caf\xe9"\n')
    (tmp_path / "endless.scfg").write_text('start -> "a" start\n')
    path = tmp_path / grammar
    ended = fewparse("grammar", "check", str(path) if path.exists() else grammar, *options)
    assert ended.code == code
    assert message in ended.out + ended.err
