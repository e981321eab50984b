"""A domain whose programs are queries: its folder, examples and constraint, and what an utterance can become."""

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fewparse.constrain.state import Constraint
from fewparse.domains.check import check_domain
from fewparse.domains.load import find_domain, load_domain
from fewparse.domains.sql.folder import SqlDomain
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import DatabaseError, DomainError, ExecutionError, FewparseError, UsageError
from fewparse.evaluate.metrics import Judge
from fewparse.example import Example, Target
from fewparse.options import Options
from fewparse.testing import CONSTRAINT_LAWS
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES
from support.shop import make_sqlite

TINY = """
    CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT);
    INSERT INTO note VALUES (1, 'first'), (2, 'it''s'), (3, '%_\\');
"""


def make(folder: Path, script: str | None = None, examples: str = "") -> Path:
    """Make a domain folder of a SQLite database that is beside it; return the folder."""
    path = folder / "data.db"
    url = make_sqlite(path) if script is None else make_sqlite(path, script)
    SqlDomain.reflect("sales", parse_url(url)).write(folder / "sales")
    (folder / "sales" / "examples.jsonl").write_text(examples)
    return folder / "sales"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path)


def line(utterance: str, program: str) -> str:
    return json.dumps({"utterance": utterance, "program": program}) + "\n"


def test_a_domain_without_examples_translates_and_executes(folder: Path) -> None:
    domain = load_domain(folder)
    domain.check()
    assert domain.examples == ()
    program = domain.program_of("the name of customers whose city is Bern", "canonical")
    assert program == "SELECT name FROM customer WHERE city = 'Bern'"
    assert domain.execute(program)["rows"] == [["Anna"], ["Dan's"]]


def test_the_description_has_a_line_for_each_table(folder: Path) -> None:
    lines = load_domain(folder).description_lines
    assert lines[0] == "customer(id integer, name [Anna | Bo | Chloé | Dan's], city [Bern | Oslo], password_hash)"
    assert "customer_id integer = customer.id" in lines[2]
    assert len(lines) == 4


@pytest.mark.parametrize(
    "written",
    [
        "select c.NAME from CUSTOMER as c where c.City = 'Bern';",
        'SELECT CUSTOMERalias0.NAME FROM CUSTOMER AS CUSTOMERalias0 WHERE CUSTOMERalias0.CITY = "Bern" ;',
        "SELECT name\nFROM customer\nWHERE (city) = 'Bern'",
    ],
)
def test_examples_are_queries_as_people_write_them(written: str, tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, examples=line("who is from Bern?", written)))
    assert domain.examples == (Example("who is from Bern?", "SELECT name FROM customer WHERE city = 'Bern'"),)
    (example,) = domain.for_target("canonical").examples
    assert example.canonical == "the name of customers whose city is Bern"


@pytest.mark.parametrize(
    ("written", "message", "caret_at"),
    [
        ("SELECT FROM WHERE", "this is not valid SQL", None),
        ("SELECT name FROM dept WHERE", "this is not valid SQL: WHERE is incomplete", None),
        ("DROP TABLE customer", "DROP is refused", 0),
        ("UPDATE customer SET name = 'x'", "UPDATE is refused", 0),
        ("SELECT age FROM customer", "age", 7),
        ("SELECT name FROM customers", "customers", 17),
    ],
)
def test_a_program_that_is_no_query_over_the_schema_is_an_error_with_line_and_caret(
    written: str, message: str, caret_at: int | None, tmp_path: Path
) -> None:
    folder = make(tmp_path, examples=line("how many?", "SELECT COUNT(*) FROM customer") + line("what?", written))
    with pytest.raises(DomainError, match=message) as raised:
        load_domain(folder)
    assert "examples.jsonl:2: the program is not in the language of queries" in raised.value.message
    assert "fewparse check" in str(raised.value.hint)
    *_, shown, caret = raised.value.message.split("\n")
    assert shown.strip().startswith(written[:20])
    assert caret_at is None or caret.index("^") - 4 == caret_at


def test_check_lists_all_such_programs_and_queries_that_fail(tmp_path: Path) -> None:
    written = ["SELECT nope FROM customer", "SELECT name FROM customer", "DELETE FROM customer"]
    folder = make(tmp_path, examples="".join(line(f"question {i}", sql) for i, sql in enumerate(written)))
    report = check_domain(find_domain(folder))
    errors = [finding for finding in report.findings if finding.level == "error"]
    assert [(finding.location, finding.kind) for finding in errors] == [
        ("examples.jsonl:1", "ill-formed"),
        ("examples.jsonl:3", "ill-formed"),
    ]


@pytest.mark.parametrize("target", ["program", "canonical"])
@pytest.mark.parametrize("law", CONSTRAINT_LAWS, ids=lambda law: law.__name__)
def test_the_constraint_obeys_the_law(law: Callable[[Constraint], None], target: Target, tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, TINY))
    law(domain.constraint(BYTES, target, utterance="""find "it's" & more"""))


INJECTION = "'; DROP TABLE note; --"


def test_an_injection_can_only_become_a_value(tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, TINY.replace("'first'", "'''; DROP TABLE note; --'")))
    schema = json.loads((domain.folder / "schema.json").read_text())
    schema["tables"][0]["columns"][1]["values"] = None
    (domain.folder / "schema.json").write_text(json.dumps(schema))
    domain = load_domain(domain.folder)
    constraint = domain.constraint(BYTES, "program", utterance=f"find {INJECTION}")
    quoted = INJECTION.replace("'", "''")
    assert constraint.accepts(f"SELECT id FROM note WHERE body = '{quoted}'".encode())
    assert not constraint.accepts(f"SELECT id FROM note WHERE body = '{INJECTION}'".encode())
    assert not constraint.accepts(f"SELECT id FROM note WHERE body = ''{INJECTION}".encode())
    assert not constraint.accepts(b"SELECT id FROM note WHERE body = 'another text'")
    assert domain.execute(f"SELECT id FROM note WHERE body = '{quoted}'")["rows"] == [[1]]


@pytest.mark.parametrize("target", ["program", "canonical"])
def test_no_output_for_an_injection_changes_the_database_or_names_what_is_not_there(
    target: Target, tmp_path: Path
) -> None:
    domain = load_domain(make(tmp_path, TINY))
    constraint = domain.constraint(BYTES, target, utterance=f'x" OR 1=1 {INJECTION}')
    rng = random.Random(0)
    before = (tmp_path / "data.db").read_bytes()
    executed = 0
    for _ in range(40):
        last = end_of_walk(constraint, rng, long=60)
        program = domain.program_of(last.text.decode(), target)
        assert program is not None
        assert domain.execute(program)["columns"]
        executed += 1
    assert executed == 40
    assert (tmp_path / "data.db").read_bytes() == before


def test_only_values_that_are_listed_can_be_compared_with(folder: Path) -> None:
    constraint = load_domain(folder).constraint(BYTES, "program", utterance="who lives in Paris")
    assert constraint.accepts(b"SELECT name FROM customer WHERE city = 'Oslo'")
    assert not constraint.accepts(b"SELECT name FROM customer WHERE city = 'Paris'")
    assert constraint.accepts(b"SELECT name FROM customer WHERE password_hash = 'Paris'")
    assert not constraint.accepts(b"SELECT name FROM customer WHERE password_hash = 'London'")
    assert not constraint.accepts(b"SELECT salary FROM customer")


def test_without_copying_any_text_is_allowed(folder: Path) -> None:
    constraint = load_domain(folder, copy=False).constraint(BYTES, "program", utterance="")
    assert constraint.accepts(b"SELECT name FROM customer WHERE password_hash = 'London'")


def test_an_untrusted_folder_opens_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("a database was opened")

    monkeypatch.setattr(sqlite3, "connect", fail)
    domain = load_domain(folder, allow_code=False)
    domain.check()
    assert domain.program_of("the number of customers", "canonical") == "SELECT COUNT(*) FROM customer"
    with pytest.raises(ExecutionError, match="the database was not opened: the folder is not trusted") as raised:
        domain.execute("SELECT COUNT(*) FROM customer")
    assert "fewparse trust" in str(raised.value)
    with pytest.raises(UsageError, match="not trusted"):
        domain.require_code()
    settings = (folder / "domain.toml").read_text()
    (folder / "domain.toml").write_text(settings.replace('schema = "schema.json"', ""))
    with pytest.raises(UsageError, match="the database was not opened"):
        load_domain(folder, allow_code=False).check()


def test_without_a_schema_file_the_schema_is_read_from_the_database(folder: Path) -> None:
    settings = (folder / "domain.toml").read_text()
    from_file = load_domain(folder)
    (folder / "domain.toml").write_text(settings.replace('schema = "schema.json"', ""))
    domain = load_domain(folder)
    assert domain.language == from_file.language


def test_a_relative_path_starts_at_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "data.db").rename(folder / "inside.db")
    settings = (folder / "domain.toml").read_text()
    (folder / "domain.toml").write_text(settings.replace(f"sqlite:///{tmp_path}/data.db", "sqlite:///inside.db"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_domain(folder).execute("SELECT COUNT(*) FROM customer")["rows"] == [[4]]


def test_a_database_that_is_gone_is_an_error_before_a_model_is_loaded(folder: Path, tmp_path: Path) -> None:
    from fewparse.options import prepare

    (tmp_path / "data.db").unlink()
    with pytest.raises(DatabaseError, match="No such file"):
        prepare(folder)
    domain, options = prepare(folder, execute=False)
    assert not options.execute
    assert domain.program_of("the number of customers", "canonical")


def edited(key: str, value: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        schema = json.loads((folder / "schema.json").read_text())
        schema[key] = value
        (folder / "schema.json").write_text(json.dumps(schema))

    return edit


def replaced(old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / "domain.toml").read_text()
        assert old in text
        (folder / "domain.toml").write_text(text.replace(old, new))

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda folder: (folder / "schema.json").write_text("{"), r"schema\.json:1:2: not readable JSON"),
        (lambda folder: (folder / "schema.json").unlink(), r"schema\.json: cannot be read"),
        (edited("tables", 3), r"not the schema of a database: `tables`"),
        (edited("tables", []), "no table"),
        (lambda folder: (folder / "phrases.toml").write_text("[tables]\nnope = 'x'\n"), "nope"),
        (lambda folder: (folder / "phrases.toml").write_text("[tables"), r"phrases\.toml"),
        (
            replaced('url = "sqlite', 'url = "postgresql://a:secret@h/d" # "sqlite'),
            r"domain\.toml:\d+: `database\.url`",
        ),
        (replaced('url = "sqlite', 'url = "nosql'), r"domain\.toml:\d+: `database\.url`: the SQL of the database"),
        (replaced("max_rows = 1000", "max_rows = 0"), r"`database\.max_rows`"),
        (replaced("max_rows", "max_row"), r"unknown key `database\.max_row`"),
        (replaced("max_rows = 1000", 'password_variable = "a b"'), r"`database\.password_variable`"),
        (replaced("target =", 'executor = "executor.py:execute"\ntarget ='), "not both"),
        (replaced('schema = "schema.json"', 'schema = "../schema.json"'), r"`constraint\.schema`"),
        (replaced('phrases = "phrases.toml"', 'phrase = "x"'), r"unknown key `constraint\.phrase`"),
    ],
)
def test_mistakes_in_the_folder_are_errors(edit: Callable[[Path], None], message: str, folder: Path) -> None:
    edit(folder)
    with pytest.raises(FewparseError, match=message) as raised:
        load_domain(folder).check()
    assert "secret" not in str(raised.value)


def test_a_query_is_judged_by_its_rows(folder: Path) -> None:
    judge = Judge(load_domain(folder))
    assert judge.criterion == "answer"
    assert judge.is_correct(
        "SELECT name FROM customer WHERE id = 1", "SELECT name FROM customer WHERE name = 'Anna'"
    )
    assert not judge.is_correct("SELECT city FROM customer WHERE id = 1", "SELECT name FROM customer WHERE id = 1")
    assert not judge.is_correct(None, "SELECT name FROM customer")


def test_a_vote_can_be_asked_for(folder: Path) -> None:
    assert Options.resolve(load_domain(folder), vote=True).vote


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t (a INTEGER);",
        "CREATE TABLE t (a BLOB);",
        'CREATE TABLE "select" ("from" TEXT, "two words" INTEGER, "quo""te" TEXT, "🎉" TEXT, "it\'s" DATE);',
        "CREATE TABLE a (id INTEGER PRIMARY KEY, a_id INTEGER REFERENCES a (id));",
    ],
)
def test_odd_schemas_have_a_grammar_whose_outputs_execute(script: str, tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, script))
    domain.check()
    constraint = domain.constraint(BYTES, "program", utterance="anything you like")
    rng = random.Random(1)
    for _ in range(10):
        last = end_of_walk(constraint, rng, long=40)
        domain.execute(last.text.decode())
