"""What is made from a schema is kept in the cache folder; nothing in there changes a result."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse.domains.sql.cache import MAX_FILES, SqlCache, from_serial, sql_cache_folder, to_serial
from fewparse.domains.sql.database import Database
from fewparse.domains.sql.english import Phrases
from fewparse.domains.sql.grammar import sql_grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from support.sql_samples import SAMPLES, integer

pytestmark = pytest.mark.usefixtures("isolated_cache")
COMPANY = SAMPLES["company"].database
GRAMMAR = sql_grammar(COMPANY, Phrases(COMPANY))


def cache_of(database: Database, **tables: str) -> SqlCache:
    return SqlCache(database, Phrases(database, tables))


def never() -> SynchronousGrammar:
    raise AssertionError("the grammar is made again")


def files() -> list[Path]:
    return sorted(sql_cache_folder().iterdir()) if sql_cache_folder().exists() else []


def test_a_grammar_is_the_same_after_it_was_stored() -> None:
    assert from_serial(to_serial(GRAMMAR)) == GRAMMAR


def test_a_stored_grammar_is_not_made_again() -> None:
    assert cache_of(COMPANY).grammar(lambda: GRAMMAR) == GRAMMAR
    assert cache_of(COMPANY).grammar(never) == GRAMMAR


def test_what_is_known_about_queries_is_stored() -> None:
    cache = cache_of(COMPANY)
    cache.normal_forms["select 1"] = "SELECT 1"
    cache.utterances["SELECT 1"] = "one"
    assert cache_of(COMPANY).utterances == {}
    cache.store_queries()
    assert (cache_of(COMPANY).normal_forms, cache_of(COMPANY).utterances) == (
        {"select 1": "SELECT 1"},
        {"SELECT 1": "one"},
    )


def test_another_schema_or_phrase_has_other_files() -> None:
    cache_of(COMPANY).grammar(lambda: GRAMMAR)
    first, *rest = COMPANY.tables
    wider = replace(COMPANY, tables=(replace(first, columns=(*first.columns, integer("new"))), *rest))
    other = sql_grammar(COMPANY, Phrases(COMPANY, {"dept": "division"}))
    for cache in (cache_of(wider), cache_of(COMPANY, dept="division")):
        assert cache.grammar(lambda: other) == other
    assert len(files()) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-100],
        lambda content: content.replace(b"SELECT", b"DELETE"),
        lambda content: b"",
        lambda content: b"not a hash\n{}",
        lambda content: b"\xff" * 100,
    ],
)
def test_a_damaged_file_is_ignored_and_written_again(damage: Callable[[bytes], bytes]) -> None:
    cache_of(COMPANY).grammar(lambda: GRAMMAR)
    (path,) = files()
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    assert cache_of(COMPANY).grammar(lambda: GRAMMAR) == GRAMMAR
    assert path.read_bytes() == intact


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / "file"))
    cache = cache_of(COMPANY)
    assert cache.grammar(lambda: GRAMMAR) is GRAMMAR
    cache.utterances["SELECT 1"] = "one"
    cache.store_queries()


def test_the_oldest_files_are_deleted() -> None:
    sql_cache_folder().mkdir(parents=True)
    for number in range(MAX_FILES + 5):
        path = sql_cache_folder() / f"{number}.queries"
        path.write_text("")
        os.utime(path, (number, number))
    cache_of(COMPANY).grammar(lambda: GRAMMAR)
    names = {path.name for path in files()}
    assert len(names) == MAX_FILES
    assert {"0.queries", "5.queries"}.isdisjoint(names)
    assert f"{MAX_FILES + 4}.queries" in names
