"""Domains with a replaced grammar, and with copying switched on or off."""

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
from support.domain_files import to_json_lines, write_domain
from support.toy_model import LongContextToyModel

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
OUTPUTS = {"program": '(Note :text "buy milk")', "canonical": 'write " buy milk"'}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A domain folder with its own grammar."""
    settings = SETTINGS.format(kind="grammar", copy='["NOTE"]')
    return write_domain(tmp_path / "home", settings, [LAMP, NOTED], {"grammar.scfg": OWN})


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A grammar folder of type tables and rules, in which every text begins with a space."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    return folder


def canonicals(domain: Domain) -> list[str | None]:
    return [example.canonical for example in domain.for_target("canonical").examples]


def test_canonical_utterances_are_those_of_the_replaced_grammar(home: Path, other: Path) -> None:
    assert canonicals(load_domain(home)) == ["own lamp", "own note buy milk"]
    assert canonicals(load_domain(home, grammar=other)) == ["turn on the lamp", 'write " buy milk"']


@pytest.mark.parametrize("lead", ["", " ", "> "])
@pytest.mark.parametrize("target", TARGETS)
def test_outputs_begin_after_the_lead_without_the_leading_space_of_the_grammar(
    target: Target, lead: str, home: Path, other: Path
) -> None:
    constraint = load_domain(home, grammar=other).constraint(
        BYTES, target, "do buy milk now", replace(bundled_template("lisp"), lead=lead)
    )
    assert constraint.accepts((lead + OUTPUTS[target]).encode())
    assert not constraint.accepts((lead + " " + OUTPUTS[target]).encode())


def test_an_output_is_translated_by_the_replaced_grammar(home: Path, other: Path) -> None:
    domain = load_domain(home, grammar=other)
    assert domain.program_of(OUTPUTS["canonical"], "canonical") == OUTPUTS["program"]
    assert domain.program_of("own lamp", "canonical") is None


@pytest.mark.parametrize("template", ["canonical", "chatml", "chatml-context"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_parse_with_a_replaced_grammar_is_well_formed(
    target: Target, template: str, home: Path, other: Path
) -> None:
    domain = load_domain(home, grammar=other, copy=False)
    parse = Parser.from_domain(domain, LongContextToyModel(), target=target, prompt=template).parse(
        "write something"
    )
    assert parse.output is not None
    assert parse.output == parse.output.lstrip()
    assert parse.program is not None
    assert parse.program == domain.program_of(parse.output, target)
    assert domain.translator is not None
    assert domain.translator.to_utterance(parse.program).best is not None


def test_a_grammar_path_is_relative_to_the_working_directory(
    home: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(other.parent)
    domain = load_domain("home", grammar=Path("other"))
    monkeypatch.chdir("/")
    assert domain.program_of("turn on the lamp", "canonical") == "(Switch :device lamp)"


def test_with_a_grammar_of_programs_alone_the_target_is_program(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.lark"
    path.write_text('start: "(Switch :device lamp)" | "(Note :text " NOTE ")"\nNOTE: /[a-z]+/\n')
    domain = load_domain(home, grammar=path)
    assert domain.table.target == "program"
    domain.check()
    assert domain.constraint(BYTES, "program").accepts(b"(Switch :device lamp)")
    with pytest.raises(UsageError, match="lacks canonical utterances"):
        domain.check("canonical")


@pytest.mark.parametrize("kind", ["induced", "trie", "none"])
def test_a_replaced_grammar_is_the_constraint_for_any_kind_of_the_domain(
    kind: str, home: Path, other: Path
) -> None:
    (home / "domain.toml").write_text(SETTINGS.format(kind=kind, copy="[]"))
    constraint = load_domain(home, grammar=other).constraint(BYTES, "canonical")
    assert constraint.accepts(b"turn on the lamp")
    assert not constraint.accepts(b"own lamp")


@pytest.mark.parametrize("kind", ["induced", "trie", "none"])
def test_a_grammar_and_another_kind_of_constraint_are_an_error(kind: str, home: Path, other: Path) -> None:
    with pytest.raises(UsageError, match=f"the constraint is `{kind}`\n.*--grammar or --constraint"):
        load_domain(home, constraint=kind, grammar=other)


def settings(home: Path, other: Path | None, copy: bool | None = None) -> object:
    (system,) = parser_systems(load_domain(home, grammar=other, copy=copy), LongContextToyModel(), {"own": {}})
    return system.settings


def test_record_settings_depend_on_the_grammar_and_on_copying(home: Path, other: Path) -> None:
    own, before, free = settings(home, None), settings(home, other), settings(home, other, copy=False)
    assert before == settings(home, other)
    assert len({str(found) for found in (own, before, free)}) == 3
    with (other / "rules.scfg").open("a") as rules:
        rules.write('device -> "the radio" , " radio"\n')
    assert settings(home, other) != before
    assert settings(home, None) == own
    assert settings(home, home / "grammar.scfg") != own


def test_a_check_uses_the_replaced_grammar(home: Path, other: Path) -> None:
    assert check_domain(load_domain(home, grammar=other)).passed
    (other / "rules.scfg").write_text(TABLES["rules.scfg"].replace(" lamp", " light"))
    report = check_domain(load_domain(home, grammar=other))
    assert [(f.kind, f.location) for f in report.findings if f.level == "error"] == [
        ("ill-formed", "examples.jsonl:1")
    ]


def test_an_underivable_example_of_a_folder_is_an_error_with_the_check_command(home: Path, other: Path) -> None:
    examples = [LAMP, {"utterance": "off", "program": "(Off)"}]
    (home / "examples.jsonl").write_text(to_json_lines(examples))
    with pytest.raises(DomainError, match=r"the program \(Off\) is not derived") as caught:
        load_domain(home, grammar=other).for_target("canonical")
    assert caught.value.hint == f"`fewparse check {home} --grammar {other}` lists all such examples."


@pytest.fixture
def benchmark_data(tmp_path: Path) -> Path:
    """A data folder with a benchmark that has an example outside the grammar."""
    folder = tmp_path / "data" / "smcalflow"
    folder.mkdir(parents=True)
    underivable = {"utterance": "do a handstand", "program": "(Handstand)"}
    plain = [{"utterance": e["utterance"], "program": e["program"]} for e in (LAMP, NOTED)]
    (folder / "examples.jsonl").write_text(to_json_lines([underivable, *plain]))
    return tmp_path / "data"


def test_underivable_examples_of_a_benchmark_are_left_out_and_counted(benchmark_data: Path, other: Path) -> None:
    domain = load_domain("smcalflow", benchmark_data, pool=2, grammar=other, copy=False)
    translated = domain.for_target("canonical")
    assert [example.canonical for example in translated.examples] == ["turn on the lamp"]
    assert translated.underivable == 1
    assert [e.program for e in translated.spare_examples] == [e.program for e in domain.spare_examples]
    assert len(domain.spare_examples) == 1
    assert domain.for_target("program") is domain


def test_a_grammar_that_derives_no_example_of_a_benchmark_is_rejected(benchmark_data: Path, other: Path) -> None:
    domain = load_domain("smcalflow", benchmark_data, pool=1, grammar=other, copy=False)
    with pytest.raises(UsageError, match="none of the 1 examples") as caught:
        domain.for_target("canonical")
    assert f"fewparse check smcalflow --grammar {other}" in str(caught.value.hint)


def test_free_text_is_copied_unless_copying_is_disabled(home: Path) -> None:
    def accepts(copy: bool | None) -> bool:
        constraint = load_domain(home, copy=copy).constraint(BYTES, "canonical", "light please")
        return constraint.accepts(b"own note buy milk")

    assert [accepts(copy) for copy in (None, True, False)] == [False, False, True]


def test_copying_without_rules_to_copy_is_an_error(home: Path) -> None:
    (home / "domain.toml").write_text(SETTINGS.format(kind="grammar", copy="[]"))
    with pytest.raises(UsageError, match="the domain home names no rules") as caught:
        load_domain(home, copy=True)
    assert "Omit --copy" in str(caught.value.hint)
    with pytest.raises(UsageError, match="the constraint `trie` has no rules"):
        load_domain(home, constraint="trie", copy=True)


def test_a_missing_rule_to_copy_is_an_error_with_a_hint(home: Path, other: Path) -> None:
    (other / "rules.scfg").write_text(TABLES["rules.scfg"].replace("NOTE", "remark"))
    with pytest.raises(UnknownName, match="unknown rule to copy 'NOTE'") as caught:
        load_domain(home, grammar=other).check()
    assert caught.value.hint == "Known: remark. Change `copy` in domain.toml, or allow any text: --no-copy."
    load_domain(home, grammar=other, copy=False).check()


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ('start -> "a" start', "Check that every recursion can end."),
        ("start -> unit", "There are no rules for unit."),
    ],
)
def test_a_replaced_grammar_that_derives_nothing_is_rejected(
    source: str, hint: str, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    for name, text in {"start.scfg": source, "types.csv": "", "templates.csv": ""}.items():
        (folder / name).write_text(text)
    with pytest.raises(ConstraintError, match="derives no text at all") as caught:
        load_domain(home, grammar=folder, copy=False).check()
    assert caught.value.hint == hint


def test_the_published_tables_of_smcalflow_can_replace_the_grammar(smcalflow_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    released = smcalflow_data / "smcalflow" / "grammar"
    for path in [*released.glob("*.csv"), ROOT / "benchmarks" / "smcalflow" / "literals.scfg"]:
        (folder / path.name).write_bytes(path.read_bytes())
    whole = load_domain("smcalflow", smcalflow_data, grammar=folder, copy=False)
    domain = whole.for_target("canonical")
    assert domain.underivable <= 3
    spaced = domain.constraint(BYTES, "canonical", template=bundled_template("canonical"))
    unspaced = domain.constraint(BYTES, "canonical")
    round_trips = 0
    for example in domain.examples[:40]:
        canonical = str(example.canonical)
        assert spaced.accepts(f" {canonical}".encode())
        assert unspaced.accepts(canonical.encode())
        round_trips += domain.program_of(canonical, "canonical") == example.program
    assert round_trips >= 36
