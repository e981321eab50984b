"""`fewparse new --from-database`: a domain folder that answers questions without any further work."""

import json
import os
import stat
from pathlib import Path

import pytest

from fewparse.domains.load import load_domain
from fewparse.domains.trust import is_trusted
from support.cli_runner import CommandResult, fewparse
from support.postgres import PASSWORD, Cluster
from support.shop import make_duckdb, make_sqlite


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return make_sqlite(tmp_path / "shop.db")


def new(folder: Path, url: str, *options: str) -> CommandResult:
    return fewparse("new", "sales", "--in", str(folder), "--from-database", url, *options)


def test_three_commands_lead_to_an_answer(shop: str, tmp_path: Path) -> None:
    made = new(tmp_path / "sales", shop)
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("4 tables and views, 16 columns, 7 with listed values.\n40 proposed examples")
    *_, command = made.out.strip().splitlines()
    assert command == f'  fewparse parse {tmp_path / "sales"} "how many customers are there?"'
    parsed = fewparse(
        "parse", str(tmp_path / "sales"), "how many customers are there?", "--decoder", "greedy", "--json"
    )
    assert (parsed.code, parsed.err) == (0, "")
    parse = json.loads(parsed.out)
    assert parse["program"].startswith("SELECT ")
    assert parse["answer"]["columns"]


def test_the_folder_is_complete_trusted_and_passes_the_check(shop: str, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    assert new(folder, shop, "--examples", "12").code == 0
    assert {path.name for path in folder.iterdir()} == {
        "domain.toml",
        "schema.json",
        "phrases.toml",
        "examples.jsonl",
    }
    assert is_trusted(folder)
    checked = fewparse("check", str(folder), "--model", "none", "--json")
    report = json.loads(checked.out)
    assert (checked.code, report["passed"], report["executed"]) == (0, True, True)
    assert report["checked"] == {"examples": 12}


def test_proposals_are_different_questions_with_an_answer(shop: str, tmp_path: Path) -> None:
    assert new(tmp_path / "sales", shop, "--examples", "25", "--seed", "3").code == 0
    domain = load_domain(tmp_path / "sales")
    assert len({example.program for example in domain.examples}) == 25
    assert len({example.utterance for example in domain.examples}) == 25
    for example in domain.examples:
        assert domain.execute(example.program)["rows"]
        assert domain.program_of(example.utterance, "canonical") == example.program
        assert "password" not in example.program
    assert any("JOIN" in example.program for example in domain.examples)
    assert new(tmp_path / "same", shop, "--examples", "25", "--seed", "3").code == 0
    same, first = ((tmp_path / name / "examples.jsonl").read_text() for name in ("same", "sales"))
    assert same == first


def test_no_examples_are_needed(shop: str, tmp_path: Path) -> None:
    made = new(tmp_path / "sales", shop, "--examples", "0")
    assert "proposed" not in made.out
    assert (tmp_path / "sales" / "examples.jsonl").read_text() == ""
    parsed = fewparse(
        "parse", str(tmp_path / "sales"), "customers", "--decoder", "greedy", "--max-tokens", "20", "--json"
    )
    assert parsed.code == 0
    assert json.loads(parsed.out)["examples_used"] == 0


def test_fewer_examples_than_asked_for_are_a_warning(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "a.db", "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1);")
    made = new(tmp_path / "sales", url, "--examples", "100")
    assert made.code == 0
    assert "examples were found that have an answer" in made.err


def test_the_path_of_the_database_works_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sqlite(tmp_path / "shop.db")
    monkeypatch.chdir(tmp_path)
    assert fewparse("new", "sales", "--from-database", "sqlite:///shop.db", "--examples", "0").code == 0
    assert f'url = "sqlite:///{tmp_path}/shop.db"' in (tmp_path / "sales" / "domain.toml").read_text()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ended = fewparse("execute", str(tmp_path / "sales"), stdin="SELECT COUNT(*) FROM customer\n")
    assert ended == CommandResult(0, "4\n", "")


def test_execute_shows_tables_or_json_and_refuses_to_write(shop: str, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    assert new(folder, shop, "--examples", "0").code == 0
    before = (tmp_path / "shop.db").read_bytes()
    queries = ("SELECT name, city FROM customer WHERE id < 4", "SELECT name FROM customer WHERE id > 9")
    programs = f"{queries[0]}\nDROP TABLE customer\n{queries[1]}\n"
    shown = fewparse("execute", str(folder), stdin=programs)
    assert shown.code == 1
    lines = [line.split() for line in shown.out.splitlines() if "─" not in line]
    assert lines[:4] == [["name", "city"], ["Anna", "Bern"], ["Bo", "Oslo"], ["Chloé", "NULL"]]
    assert shown.out.splitlines()[5:] == ["error: DROP is refused: a query may only read", "no rows"]
    as_json = fewparse("execute", str(folder), "--json", stdin=programs)
    rows = [json.loads(line) for line in as_json.out.splitlines()]
    assert rows[0]["answer"]["rows"] == [["Anna", "Bern"], ["Bo", "Oslo"], ["Chloé", None]]
    assert rows[1] == {"answer": None, "error": "DROP is refused: a query may only read"}
    assert (tmp_path / "shop.db").read_bytes() == before


def test_a_folder_that_is_not_trusted_is_not_executed(shop: str, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    assert new(folder, shop, "--examples", "2").code == 0
    assert fewparse("trust", "--remove", str(folder)).code == 0
    ended = fewparse("execute", str(folder), stdin="SELECT 1\n")
    assert ended.code == 2
    assert "the database was not opened: the folder is not trusted" in ended.err
    checked = fewparse("check", str(folder), "--model", "none")
    assert checked.code == 0
    assert "the database was not opened" in checked.err
    parsed = fewparse("parse", str(folder), "how many customers are there", "--decoder", "greedy", "--json")
    assert (parsed.code, json.loads(parsed.out)["answer"]) == (0, None)


def test_translate_takes_queries_as_people_write_them(shop: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "sales")
    assert new(Path(folder), shop, "--examples", "0").code == 0
    written = (
        'SELECT c.NAME FROM CUSTOMER AS c WHERE c.CITY = "Bern" ;\nDROP TABLE customer\nSELECT x FROM customer\n'
    )
    ended = fewparse("grammar", "translate", folder, "--to", "utterance", stdin=written)
    first, second, third = (json.loads(line) for line in ended.out.splitlines())
    assert first["output"] == "the name of customers whose city is Bern"
    assert "DROP is refused" in second["error"]
    assert "`x`" in third["error"]
    back = fewparse("grammar", "translate", folder, "--to", "program", stdin=first["output"] + "\n")
    assert json.loads(back.out)["output"] == "SELECT name FROM customer WHERE city = 'Bern'"
    tree = fewparse("grammar", "tree", folder, "select NAME from CUSTOMER")
    assert tree.code == 0
    for command in ("stats", "check"):
        assert fewparse("grammar", command, folder).code == 0
    assert len(fewparse("grammar", "render", folder, "--count", "3").out.splitlines()) == 3


def test_duckdb_and_postgresql_lead_to_the_same_domain(tmp_path: Path, postgres: Cluster) -> None:
    urls = {"duckdb": make_duckdb(tmp_path / "shop.duckdb"), "postgresql": postgres.url("shop")}
    for kind, url in urls.items():
        folder = tmp_path / kind
        made = new(folder, url, "--examples", "3")
        assert (made.code, made.err) == (0, ""), made.err
        ended = fewparse("execute", str(folder), stdin="SELECT COUNT(*) FROM customer\n")
        assert ended == CommandResult(0, "4\n", "")
        assert fewparse("check", str(folder), "--model", "none").code == 0


def test_the_password_is_neither_stored_nor_shown(tmp_path: Path, postgres: Cluster) -> None:
    folder = tmp_path / "sales"
    made = new(folder, postgres.tcp_url(database="shop"), "--examples", "3")
    assert made.code == 0
    assert "The password is not stored: set SALES_PASSWORD" in made.out
    for shown in (made.out, made.err, *(path.read_text() for path in folder.iterdir())):
        assert PASSWORD not in shown
        assert "correct%20horse" not in shown
    query = "SELECT COUNT(*) FROM customer\n"
    without = fewparse("execute", str(folder), stdin=query)
    assert without.code == 1
    assert "password_variable" in without.err
    ended = fewparse("execute", str(folder), stdin=query, env={"SALES_PASSWORD": PASSWORD})
    assert ended == CommandResult(0, "4\n", "")
    wrong = fewparse("execute", str(folder), stdin=query, env={"SALES_PASSWORD": "wr0ng"})
    assert (wrong.code, "wr0ng" in wrong.err) == (1, False)


def test_some_tables_can_be_selected(shop: str, tmp_path: Path) -> None:
    assert new(tmp_path / "sales", shop, "--table", "cust*", "--examples", "0").code == 0
    schema = json.loads((tmp_path / "sales" / "schema.json").read_text())
    assert [table["name"] for table in schema["tables"]] == ["customer"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from-database", "sqlite:///gone.db"], "No such file"),
        (["--from-database", "gone.db"], "not the URL of a database"),
        (["--from-database", "sqlite:///shop.db", "--table", "nope"], "unknown table 'nope'"),
        (["--from-database", "sqlite:///shop.db", "--schema", "main"], "has no schemas"),
        (["--from-database", "sqlite:///shop.db", "--examples", "-1"], "examples"),
        (["--examples", "3"], "are for domains made from a database"),
        (["--table", "a"], "are for domains made from a database"),
    ],
)
def test_a_mistake_is_an_error_and_makes_no_folder(
    options: list[str], message: str, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = fewparse("new", "sales", *options)
    assert ended.code in (1, 2)
    assert message in ended.err
    assert not (tmp_path / "sales").exists()


def test_an_existing_folder_stays_as_it_is(shop: str, tmp_path: Path) -> None:
    (tmp_path / "sales").mkdir()
    ended = new(tmp_path / "sales", shop)
    assert (ended.code, list((tmp_path / "sales").iterdir())) == (2, [])
    assert "exists already" in ended.err


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_files_are_not_executable(shop: str, tmp_path: Path) -> None:
    assert new(tmp_path / "sales", shop, "--examples", "0").code == 0
    assert not any(path.stat().st_mode & stat.S_IXUSR for path in (tmp_path / "sales").iterdir())
