"""Another grammar in place of the domain's own, and free text that is copied or not."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse import Domain, Parser, load_domain
from fewparse.domains.check import check_domain
from fewparse.errors import ConstraintError, DomainError, UnknownName, UsageError
from fewparse.evaluate.run import parser_systems
from fewparse.example import TARGETS, Target
from fewparse.prompt import bundled_template
from fewparse.vocabulary import BYTES
from support.toy_model import ToyModel

ROOT = Path(__file__).parents[2]
OWN = r"""
start -> "own " device , "(Switch :device " device ")"
start -> "own note " NOTE , "(Note :text \"" NOTE "\")"
device -> "lamp"
NOTE -> /[a-z ]/ NOTE
NOTE -> /[a-z ]/
"""
SETTINGS = """
name = "home"
target = "canonical"
[retrieve]
examples = 2
retriever = "bm25"
[constraint]
kind = "{kind}"
grammar = "grammar.scfg"
copy = {copy}
[search]
decoder = "greedy"
max_tokens = 60
"""
LAMP = {"utterance": "light please", "program": "(Switch :device lamp)", "canonical": "own lamp"}
NOTED = {"utterance": "note buy milk", "program": '(Note :text "buy milk")', "canonical": "own note buy milk"}
TABLES = {
    "types.csv": "Switch,Unit,device: Device\nNote,Unit,text: Words\n#Device,Device\n#Words,Words\n",
    "templates.csv": "Switch,turn on $device\nNote,write $text\n",
    "rules.scfg": r"""
start -> " " unit , unit
device -> "the lamp" , " lamp"
words -> "\" " NOTE "\"" , " \"" NOTE "\""
NOTE -> /[^"]/ NOTE
NOTE -> /[^"]/
""",
}
SAID = {"program": '(Note :text "buy milk")', "canonical": 'write " buy milk"'}


def write_lines(path: Path, examples: Sequence[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A domain folder with a grammar of its own."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "domain.toml").write_text(SETTINGS.format(kind="grammar", copy='["NOTE"]'))
    (folder / "grammar.scfg").write_text(OWN)
    write_lines(folder / "examples.jsonl", [LAMP, NOTED])
    return folder


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A grammar folder of type tables and rules, in which every text begins with a blank."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    return folder


def canonicals(domain: Domain) -> list[str | None]:
    return [example.canonical for example in domain.for_target("canonical").examples]


def test_canonical_utterances_are_those_of_the_grammar_in_force(home: Path, other: Path) -> None:
    assert canonicals(load_domain(home)) == ["own lamp", "own note buy milk"]
    assert canonicals(load_domain(home, grammar=other)) == ["turn on the lamp", 'write " buy milk"']


@pytest.mark.parametrize("lead", ["", " ", "> "])
@pytest.mark.parametrize("target", TARGETS)
def test_texts_begin_behind_the_lead_of_the_prompt_and_with_no_blank_of_the_grammar(
    target: Target, lead: str, home: Path, other: Path
) -> None:
    constraint = load_domain(home, grammar=other).constraint(
        BYTES, target, "do buy milk now", replace(bundled_template("lisp"), lead=lead)
    )
    assert constraint.accepts((lead + SAID[target]).encode())
    assert not constraint.accepts((lead + " " + SAID[target]).encode())


def test_an_output_has_its_program(home: Path, other: Path) -> None:
    domain = load_domain(home, grammar=other)
    assert domain.program_of(SAID["canonical"], "canonical") == SAID["program"]
    assert domain.program_of("own lamp", "canonical") is None


class Reader(ToyModel):
    """A toy with room for prompts."""

    context_length = 10_000


@pytest.mark.parametrize("template", ["canonical", "chatml", "chatml-context"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_parse_under_it_is_well_formed(target: Target, template: str, home: Path, other: Path) -> None:
    domain = load_domain(home, grammar=other, copy=False)
    parse = Parser.from_domain(domain, Reader(), target=target, prompt=template).parse("write something")
    assert parse.output is not None
    assert parse.output == parse.output.lstrip()
    assert parse.program is not None
    assert parse.program == domain.program_of(parse.output, target)
    assert domain.translator is not None
    assert domain.translator.to_utterance(parse.program).best is not None


def test_a_path_is_relative_to_where_one_is(home: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(other.parent)
    domain = load_domain("home", grammar=Path("other"))
    monkeypatch.chdir("/")
    assert domain.program_of("turn on the lamp", "canonical") == "(Switch :device lamp)"


def test_a_grammar_of_programs_alone_makes_programs_the_target(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.lark"
    path.write_text('start: "(Switch :device lamp)" | "(Note :text " NOTE ")"\nNOTE: /[a-z]+/\n')
    domain = load_domain(home, grammar=path)
    assert domain.table.target == "program"
    domain.check()
    assert domain.constraint(BYTES, "program").accepts(b"(Switch :device lamp)")
    with pytest.raises(UsageError, match="lacks canonical utterances"):
        domain.check("canonical")


@pytest.mark.parametrize("kind", ["induced", "trie", "none"])
def test_it_is_the_constraint_whatever_the_domain_has_chosen(kind: str, home: Path, other: Path) -> None:
    (home / "domain.toml").write_text(SETTINGS.format(kind=kind, copy="[]"))
    constraint = load_domain(home, grammar=other).constraint(BYTES, "canonical")
    assert constraint.accepts(b"turn on the lamp")
    assert not constraint.accepts(b"own lamp")


@pytest.mark.parametrize("kind", ["induced", "trie", "none"])
def test_another_kind_of_constraint_contradicts_it(kind: str, home: Path, other: Path) -> None:
    with pytest.raises(UsageError, match=f"the constraint is `{kind}`\n.*--grammar or --constraint"):
        load_domain(home, constraint=kind, grammar=other)


def settings(home: Path, other: Path | None, copy: bool | None = None) -> object:
    (system,) = parser_systems(load_domain(home, grammar=other, copy=copy), Reader(), {"own": {}})
    return system.settings


def test_results_are_told_apart_by_the_grammar_and_by_what_is_copied(home: Path, other: Path) -> None:
    own, before, free = settings(home, None), settings(home, other), settings(home, other, copy=False)
    assert before == settings(home, other)
    assert len({str(found) for found in (own, before, free)}) == 3
    with (other / "rules.scfg").open("a") as rules:
        rules.write('device -> "the radio" , " radio"\n')
    assert settings(home, other) != before
    assert settings(home, None) == own
    assert settings(home, home / "grammar.scfg") != own


def test_a_check_judges_examples_by_the_grammar_in_force(home: Path, other: Path) -> None:
    assert check_domain(load_domain(home, grammar=other)).passed
    (other / "rules.scfg").write_text(TABLES["rules.scfg"].replace(" lamp", " light"))
    report = check_domain(load_domain(home, grammar=other))
    assert [(f.kind, f.location) for f in report.findings if f.level == "error"] == [
        ("ill-formed", "examples.jsonl:1")
    ]


def test_an_example_of_the_folder_that_it_cannot_say_is_named_with_the_command_that_lists_all(
    home: Path, other: Path
) -> None:
    write_lines(home / "examples.jsonl", [LAMP, {"utterance": "off", "program": "(Off)"}])
    with pytest.raises(DomainError, match=r"the program \(Off\) is not derived") as caught:
        load_domain(home, grammar=other).for_target("canonical")
    assert caught.value.hint == f"`fewparse check home --grammar {other}` lists all such examples."


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    """A data folder in which a benchmark has an example that not every grammar can say."""
    folder = tmp_path / "data" / "smcalflow"
    folder.mkdir(parents=True)
    strange = {"utterance": "do a handstand", "program": "(Handstand)"}
    plain = [{"utterance": e["utterance"], "program": e["program"]} for e in (LAMP, NOTED)]
    write_lines(folder / "examples.jsonl", [strange, *plain])
    return tmp_path / "data"


def test_fetched_examples_that_it_cannot_say_are_left_out_and_counted(fetched: Path, other: Path) -> None:
    domain = load_domain("smcalflow", fetched, pool=2, grammar=other, copy=False)
    spoken = domain.for_target("canonical")
    assert [example.canonical for example in spoken.examples] == ["turn on the lamp"]
    assert spoken.underivable == 1
    assert [e.program for e in spoken.spare_examples] == [e.program for e in domain.spare_examples]
    assert len(domain.spare_examples) == 1
    assert domain.for_target("program") is domain


def test_a_grammar_that_says_none_of_the_fetched_examples_is_refused(fetched: Path, other: Path) -> None:
    domain = load_domain("smcalflow", fetched, pool=1, grammar=other, copy=False)
    with pytest.raises(UsageError, match="none of the 1 examples") as caught:
        domain.for_target("canonical")
    assert f"fewparse check smcalflow --grammar {other}" in str(caught.value.hint)


def test_free_text_is_copied_unless_it_need_not_be(home: Path) -> None:
    def admits(copy: bool | None) -> bool:
        constraint = load_domain(home, copy=copy).constraint(BYTES, "canonical", "light please")
        return constraint.accepts(b"own note buy milk")

    assert [admits(copy) for copy in (None, True, False)] == [False, False, True]


def test_nothing_can_be_copied_where_no_rule_is_named(home: Path) -> None:
    (home / "domain.toml").write_text(SETTINGS.format(kind="grammar", copy="[]"))
    with pytest.raises(UsageError, match="the domain home names no rules") as caught:
        load_domain(home, copy=True)
    assert "Omit --copy" in str(caught.value.hint)
    with pytest.raises(UsageError, match="the constraint `trie` has no rules"):
        load_domain(home, constraint="trie", copy=True)


def test_a_rule_to_copy_that_the_other_grammar_lacks_is_named_with_the_way_out(home: Path, other: Path) -> None:
    (other / "rules.scfg").write_text(TABLES["rules.scfg"].replace("NOTE", "remark"))
    with pytest.raises(UnknownName, match="unknown rule to copy 'NOTE'") as caught:
        load_domain(home, grammar=other).check()
    assert caught.value.hint == "Known: remark. Or allow any text: --no-copy."
    load_domain(home, grammar=other, copy=False).check()


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ('start -> "a" start', "Check that every recursion can end."),
        ("start -> unit", "There are no rules for unit."),
    ],
)
def test_a_grammar_that_derives_nothing_is_refused_at_once(
    source: str, hint: str, home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "nothing.scfg"
    path.write_text(source)
    with pytest.raises(ConstraintError, match="derives no text at all") as caught:
        load_domain(home, grammar=path, copy=False).check()
    assert caught.value.hint == hint


def test_the_released_tables_of_smcalflow_are_plugged_in_as_they_are(smcalflow_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    released = smcalflow_data / "smcalflow" / "grammar"
    for path in [*released.glob("*.csv"), ROOT / "benchmarks" / "smcalflow" / "literals.scfg"]:
        (folder / path.name).write_bytes(path.read_bytes())
    whole = load_domain("smcalflow", smcalflow_data, grammar=folder, copy=False)
    domain = whole.for_target("canonical")
    assert domain.underivable <= 3
    spaced = domain.constraint(BYTES, "canonical", template=bundled_template("canonical"))
    unspaced = domain.constraint(BYTES, "canonical")
    back = 0
    for example in domain.examples[:40]:
        canonical = str(example.canonical)
        assert spaced.accepts(f" {canonical}".encode())
        assert unspaced.accepts(canonical.encode())
        back += domain.program_of(canonical, "canonical") == example.program
    assert back >= 36
