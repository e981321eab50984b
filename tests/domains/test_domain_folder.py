"""Reading a domain folder: its settings and files, and errors with their location."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.domain import Domain
from fewparse.domains.examples import PAIR, form
from fewparse.domains.load import bundled_domains, load_domain
from fewparse.domains.schema import SearchTable
from fewparse.errors import DomainError, ExecutionError, FewparseError, GrammarError, UnknownName, UsageError
from fewparse.options import Options
from fewparse.prompt import bundled_template
from fewparse.vocabulary import BYTES
from support.domain_files import copy_starter, to_json_lines

Edit = Callable[..., Path]
TEMPLATE = 'preamble = "Home:\\n"\nexample = "{utterance} ={output}\\n"\nquery = "{utterance} ="\nlead = " "\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the starter domain."""
    return copy_starter(tmp_path / "home")


@pytest.fixture
def edit(folder: Path) -> Edit:
    """A function that replaces a text in a file of the folder."""

    def change(file: str, right: str, wrong: str) -> Path:
        text = (folder / file).read_text()
        assert text.count(right) == 1
        (folder / file).write_text(text.replace(right, wrong))
        return folder

    return change


def loading_error(folder: Path, use: Callable[[Domain], Any] = lambda domain: None) -> FewparseError:
    with pytest.raises(FewparseError) as raised:
        use(load_domain(folder))
    return raised.value


def test_a_bundled_domain_is_found_by_its_name() -> None:
    assert load_domain("starter").name == "starter"
    assert set(bundled_domains()) >= {"calendar", "starter"}


@pytest.mark.parametrize("name", bundled_domains())
def test_a_bundled_domain_is_valid_and_its_programs_execute(name: str) -> None:
    domain = load_domain(name)
    domain.check()
    assert domain.test_examples
    for example in (*domain.examples, *domain.test_examples):
        domain.execute(example.program)


def test_a_folder_is_found_by_its_path(folder: Path) -> None:
    assert load_domain(folder).folder == load_domain(str(folder)).folder == folder


def test_a_tilde_in_a_path_is_expanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    assert load_domain("~/home").folder == folder


@pytest.mark.parametrize("name", ["calender", "no/such/folder"])
def test_a_name_without_a_domain_is_unknown(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown domain"):
        load_domain(name)


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x", "./nowhere", "../nowhere/", "/nowhere/at/all", "."])
def test_a_path_without_a_domain_folder_is_not_compared_with_names(path: str) -> None:
    with pytest.raises(FewparseError) as caught:
        load_domain(path)
    assert "calendar" not in str(caught.value)
    assert "`fewparse new NAME` creates a domain folder." in str(caught.value)
    with pytest.raises(UsageError, match="is not a folder"):
        load_domain(__file__)


def test_the_error_for_a_folder_without_settings_has_a_hint(folder: Path) -> None:
    (folder / "domain.toml").unlink()
    error = loading_error(folder)
    assert error.message == f"{folder}: the folder has no domain.toml"
    assert error.hint == "`fewparse new NAME` creates a domain folder."


SETTINGS = {
    "a syntax error": ("width = 5", "width = = 5", ":20:9: not valid TOML", "        ^", None),
    "an unterminated string": ("width = 5", 'width = "5', ":20:11: not valid TOML", "          ^", None),
    "an unknown key": (
        "width = 5",
        "widht = 5",
        ":20: unknown key `search.widht`",
        "widht",
        "Did you mean width?",
    ),
    "an unknown table": ("[search]", "[serach]", ":18: unknown key `serach`", "[serach]", "Did you mean search?"),
    "an unknown top key": ("target =", "tagret =", ":4: unknown key `tagret`", "tagret", "Did you mean target?"),
    "a key of another table": (
        *("width = 5", "examples = 5", ":20: unknown key `search.examples`", "examples = 5"),
        f"Known: {', '.join(SearchTable.model_fields)}.",
    ),
    "an alias": (
        *("copy =", "copies =", ":16: unknown key `constraint.copies`", "copies"),
        "Did you mean copy or scorer?",
    ),
    "a string for a number": ("width = 5", 'width = "5"', ":20: `search.width`: ", 'width = "5"', None),
    "a boolean for a number": ("width = 5", "width = true", ":20: `search.width`: ", "width = true", None),
    "too small a number": ("width = 5", "width = 0", ":20: `search.width`: ", "width = 0", None),
    "too large a number": ("width = 5", "width = 101", ":20: `search.width`: ", "width = 101", None),
    "not a number": ("rerank = 1.0", "rerank = nan", ":21: `search.rerank`: ", "rerank = nan", None),
    "an unknown choice": ('"speculative"  ', '"guess"  ', ":19: `search.decoder`: ", "decoder =", None),
    "an unknown target": ('"program"', '"prose"', ":4: `target`: ", "target =", None),
    "a string for a list": ('["NOTE"]', '"NOTE"', ":16: `constraint.copy`: ", "copy =", None),
    "a number in a list": ('["NOTE"]', '["NOTE", 3]', ":16: `constraint.copy`: ", "copy =", None),
    "an executor without a function": (
        '"executor.py:execute"',
        '"executor.py"',
        ":5: `executor`: ",
        "executor =",
        None,
    ),
    "a template for an unknown target": (
        *('prompt = "lisp"', 'prompt = { programs = "lisp" }', ":6: unknown key `prompt.programs`"),
        *("prompt =", "Did you mean program?"),
    ),
    **{
        f"the name {name!r:.20}": ('"starter"', f'"{name}"', ":2: `name`: ", "", None)
        for name in ("", "../x", "/x", "a/../b", "a//b", "a/", "x y", "\\u001b[2J", "a\\nb", "é", "x" * 101)
    },
    "no name": ('name = "starter"', "", ": `name`: Field required", "", None),
}


@pytest.mark.parametrize(("right", "wrong", "location", "shown", "hint"), SETTINGS.values(), ids=SETTINGS)
def test_a_mistake_in_the_settings_is_shown_at_its_line(
    right: str, wrong: str, location: str, shown: str, hint: str | None, edit: Edit
) -> None:
    folder = edit("domain.toml", right, wrong)
    error = loading_error(folder)
    assert isinstance(error, DomainError)
    assert error.message.startswith(f"{folder / 'domain.toml'}{location}")
    assert shown in error.message
    assert error.hint == hint


EXAMPLES = {
    "not JSON": ('{"utterance": "x" "program": "y"}', ":3:19: not valid JSON", " " * 22 + "^", None),
    "not an object": ("[1]", ":3:1: expected an object", "    ^", None),
    "a missing key": ('{"utterance": "x"}', ":3:1: `program` is missing", "    ^", form(PAIR)),
    "an empty value": ('{"utterance": " ", "program": "y"}', ":3:1: `utterance` is missing", "    ^", form(PAIR)),
    "a wrong type": (
        '{"utterance": "x", "program": 3}',
        ":3:20: `program` must be a string",
        " " * 23 + "^",
        None,
    ),
    "an unknown key": ('{"utterance": "x", "progam": "y"}', ":3:20: unknown key", "^", "Did you mean program?"),
    "a lone surrogate": (
        '{"utterance": "\\ud83d", "program": "y"}',
        ":3:2: `utterance` contains a lone surrogate",
        "",
        None,
    ),
    "deep nesting": ("[" * 100_000, ":3: not readable JSON", "", None),
    "a huge number": (
        '{"utterance": ' + "1" * 5_000 + "}",
        ":3: not readable JSON: a number has too many digits",
        "",
        None,
    ),
    "a key twice": (
        '{"utterance": "x", "program": "y", "program": "z"}',
        ":3: the key 'program' occurs twice",
        '"program": "z"',
        None,
    ),
    "not a number": ('{"utterance": NaN, "program": "y"}', ":3:2: `utterance` must be a string", "^", None),
    "a long line": (
        '{"utterance": "' + "x" * 2_000_000 + '", "program": "y"}',
        ":3: the line has more than 1,000,000 characters",
        "",
        None,
    ),
}


@pytest.mark.parametrize("file", ["examples.jsonl", "test.jsonl"])
@pytest.mark.parametrize(("line", "location", "shown", "hint"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_mistake_in_the_examples_is_shown_at_its_location(
    line: str, location: str, shown: str, hint: str | None, file: str, folder: Path
) -> None:
    good = '{"utterance": "lamp on", "program": "(set (lamp hall) on)"}'
    (folder / file).write_text(f"{good}\n\n{line}\n")
    error = loading_error(folder, lambda domain: domain.test_examples)
    assert isinstance(error, DomainError)
    assert error.message.startswith(f"{folder / file}{location}")
    assert shown in error.message
    assert error.hint == hint


@pytest.mark.parametrize("kind", ["induced", "trie"])
def test_an_empty_file_of_examples_is_rejected_where_the_constraint_is_made_from_them(
    folder: Path, kind: str
) -> None:
    (folder / "examples.jsonl").write_text("\n\n")
    with pytest.raises(DomainError, match=f"there are no examples, and the constraint `{kind}` needs some"):
        load_domain(folder, constraint=kind)
    assert load_domain(folder).examples == ()


def test_a_missing_file_of_examples_is_an_error_and_a_missing_test_set_is_empty(folder: Path) -> None:
    (folder / "test.jsonl").unlink()
    assert load_domain(folder).test_examples == ()
    (folder / "examples.jsonl").unlink()
    assert loading_error(folder).message == f"{folder / 'examples.jsonl'}: there is no such file"


@pytest.mark.parametrize("file", ["domain.toml", "examples.jsonl", "grammar.lark", "test.jsonl"])
def test_a_file_that_is_not_utf8_is_rejected(file: str, folder: Path) -> None:
    (folder / file).write_bytes(b'# "caf\xe9"\n')
    error = loading_error(folder, lambda domain: (domain.grammar, domain.test_examples))
    assert error.message == f"{folder / file}: not UTF-8 text (byte 7)"


def test_a_mistake_in_the_grammar_is_shown_with_line_column_and_hint(edit: Edit) -> None:
    folder = edit("grammar.lark", 'DEVICE " " ROOM', 'DEVICE " " ROMO')
    error = loading_error(folder, lambda domain: domain.check())
    assert isinstance(error, GrammarError)
    assert error.message.startswith(f"{folder / 'grammar.lark'}:6:24: `ROMO` is not defined\n")
    assert error.hint == "Did you mean ROOM?"


def test_the_error_for_a_missing_grammar_has_its_path(folder: Path) -> None:
    (folder / "grammar.lark").unlink()
    error = loading_error(folder, lambda domain: domain.check())
    assert error.message == f"{folder / 'grammar.lark'}: cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("right", "wrong", "problem", "hint"),
    [
        ('copy = ["NOTE"]', 'copy = ["NOET"]', "unknown rule to copy 'NOET'", "NOTE"),
        ("[retrieve]", '[retrieve]\nfold = ["ROMO"]', "unknown rule to fold 'ROMO'", "Did you mean ROOM?"),
        ('"lisp"', '"lips"', "unknown prompt 'lips'", "Did you mean lisp?"),
        ("[constraint]", '[constraint]\nstart = "begin"', "no rule is called `begin`", ""),
    ],
    ids=["copy", "fold", "prompt", "start"],
)
def test_an_unknown_rule_or_prompt_is_rejected(
    right: str, wrong: str, problem: str, hint: str, edit: Edit
) -> None:
    error = loading_error(edit("domain.toml", right, wrong), lambda domain: domain.check())
    assert problem in error.message
    assert hint in (error.hint or "")


def test_a_trie_needs_no_grammar_file(edit: Edit) -> None:
    edit("domain.toml", 'kind = "grammar"', 'kind = "trie"')
    folder = edit("domain.toml", 'copy = ["NOTE"]', "")
    (folder / "grammar.lark").unlink()
    domain = load_domain(folder)
    domain.check()
    constraint = domain.constraint(BYTES, "program", "anything", bundled_template("canonical"))
    assert constraint.accepts(b" (set (lamp hall) on)")
    assert not constraint.accepts(b" (set (radio hall) (level 20))")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\n", "the executor executor.py has no function `execute`"),
        ("execute = 1\n", "the executor executor.py has no function `execute`"),
        ("1 / 0\n", "the executor executor.py cannot be loaded: ZeroDivisionError('division by zero')"),
        ("def (\n", "the executor executor.py cannot be loaded: SyntaxError"),
        (None, "the executor executor.py cannot be loaded: FileNotFoundError"),
    ],
    ids=["no function", "not callable", "raises", "not Python", "no file"],
)
def test_an_executor_that_cannot_be_loaded_is_a_domain_error(
    source: str | None, problem: str, folder: Path
) -> None:
    if source is None:
        (folder / "executor.py").unlink()
    else:
        (folder / "executor.py").write_text(source)
    error = loading_error(folder, lambda domain: domain.check())
    assert isinstance(error, DomainError)
    assert error.message.startswith(f"{folder / 'domain.toml'}: {problem}")


@pytest.mark.parametrize("answer", ["{1, 2}", "float('inf')", "object()", "{1: 2, 'a': 3}", "1 / 0"])
def test_an_answer_that_json_cannot_represent_is_an_execution_error(answer: str, folder: Path) -> None:
    (folder / "executor.py").write_text(f"def execute(program): return {answer}\n")
    with pytest.raises(ExecutionError):
        load_domain(folder).execute("anything")


def test_execution_without_an_executor_is_an_error(edit: Edit) -> None:
    domain = load_domain(edit("domain.toml", "executor =", "# executor ="))
    assert domain.executor is None
    with pytest.raises(ExecutionError, match="the domain starter has no executor"):
        domain.execute("(ask (lamp hall))")


@pytest.mark.parametrize("name", ["home", "home.toml"])
def test_a_folder_may_have_its_own_prompt(name: str, edit: Edit) -> None:
    folder = edit("domain.toml", '"lisp"', f'"{name}"')
    (folder / "home.toml").write_text(TEMPLATE)
    prompt = load_domain(folder).template().render([], "lamp on")
    assert prompt.text == "Home:\nlamp on ="


def test_each_target_may_have_its_own_prompt(edit: Edit) -> None:
    domain = load_domain(edit("domain.toml", 'prompt = "lisp"', 'prompt = { canonical = "chatml" }'))
    assert Options.resolve(domain).prompt == "lisp"
    assert Options.resolve(domain, target="canonical").prompt == "chatml"
    assert Options.resolve(domain, target="canonical", prompt="canonical").prompt == "canonical"


def test_each_target_may_have_its_own_token_limit(edit: Edit) -> None:
    limits = "width = 5\nmax_tokens = { canonical = 30, program = 200 }"
    domain = load_domain(edit("domain.toml", "width = 5", limits))
    assert Options.resolve(domain, target="canonical").search.max_tokens == 30
    assert Options.resolve(domain, target="program").search.max_tokens == 200
    assert Options.resolve(domain, target="program", max_tokens=50).search.max_tokens == 50


def test_a_single_token_limit_applies_to_both_targets(edit: Edit) -> None:
    domain = load_domain(edit("domain.toml", "width = 5", "width = 5\nmax_tokens = 40"))
    assert {Options.resolve(domain, target=target).search.max_tokens for target in ("canonical", "program")} == {
        40
    }


def test_a_mistake_in_a_prompt_of_the_folder_is_shown_with_its_line(edit: Edit) -> None:
    folder = edit("domain.toml", '"lisp"', '"home"')
    (folder / "home.toml").write_text(TEMPLATE.replace("query", "qeury"))
    error = loading_error(folder, lambda domain: domain.check())
    assert error.message.startswith(f"{folder / 'home.toml'}:3: unknown key 'qeury'")


def test_the_canonical_target_needs_a_canonical_utterance_on_every_line(edit: Edit) -> None:
    folder = edit("domain.toml", '"program"', '"canonical"')
    lines = [
        json.dumps({"utterance": "x", "program": "y", "canonical": "z"}),
        "",
        '{"utterance": "x", "program": "y"}',
    ]
    (folder / "examples.jsonl").write_text("\n".join(lines))
    assert loading_error(folder).message.startswith(f"{folder / 'examples.jsonl'}:3:1: `canonical` is missing")


def test_a_canonical_utterance_has_the_program_of_its_first_example(edit: Edit) -> None:
    folder = edit("domain.toml", '"program"', '"canonical"')
    examples = [
        {"utterance": "a", "program": p, "canonical": c} for p, c in [("1", "one"), ("2", "two"), ("3", "one")]
    ]
    (folder / "examples.jsonl").write_text(to_json_lines(examples))
    domain = load_domain(folder)
    assert [domain.program_of(text, "canonical") for text in ("one", "two", "three")] == ["1", "2", None]


def test_a_long_name_is_shortened_in_messages(folder: Path) -> None:
    (folder / "domain.toml").write_text(f"{'x' * 500_000} = 1\n")
    assert len(str(loading_error(folder))) < 2000
    (folder / "domain.toml").write_text(f'name = "x"\n[search]\ndecoder = "{"x" * 500_000}"\n')
    assert len(str(loading_error(folder))) < 2000


def test_a_large_file_of_settings_is_rejected(folder: Path) -> None:
    (folder / "domain.toml").write_text("a = 1\n" * 200_000)
    assert "larger than 1,000,000 bytes" in loading_error(folder).message


TEMPLATES = {
    "a format specification": ("{utterance} =", "{utterance:>1000000000} =", "does not contain {utterance}"),
    "a conversion": ("{utterance} =", "{utterance!r} =", "does not contain {utterance}"),
    "an attribute": ("{utterance} =", "{utterance.__class__} =", "does not contain {utterance}"),
    "many placeholders": ("{utterance} =", "{utterance}" * 1000 + " =", "more than 20 placeholders"),
    "an empty stop": ('lead = " "', 'stop = ""', "`stop` is empty"),
    "a large file": ("Home:", "x" * 1_000_001, "larger than 1,000,000 bytes"),
    "a number": ('lead = " "', "lead = 1", "`lead` must be a string"),
}


@pytest.mark.parametrize(("right", "wrong", "problem"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_that_cannot_be_filled_is_rejected(right: str, wrong: str, problem: str, edit: Edit) -> None:
    folder = edit("domain.toml", '"lisp"', '"home"')
    (folder / "home.toml").write_text(TEMPLATE.replace(right, wrong))
    assert problem in loading_error(folder, lambda domain: domain.check()).message


def test_unknown_placeholders_of_a_template_are_plain_text(edit: Edit) -> None:
    folder = edit("domain.toml", '"lisp"', '"home"')
    (folder / "home.toml").write_text(TEMPLATE.replace("Home:", "{0} {x!r:>99} {utterance.__class__} {"))
    assert "{0} {x!r:>99} {utterance.__class__} {\n" in load_domain(folder).template().render([], "u").text
