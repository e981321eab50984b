"""URLs of databases: which database, and where the password is not."""

from pathlib import Path

import pytest

from fewparse.domains.sql.urls import DatabaseUrl, parse_url
from fewparse.errors import UsageError
from support.shop import make_duckdb, make_sqlite


def test_three_slashes_are_a_relative_path_and_four_an_absolute_one(tmp_path: Path) -> None:
    assert parse_url("sqlite:///shop.db").path == Path("shop.db")
    assert parse_url("sqlite:////data/shop.db").path == Path("/data/shop.db")
    assert parse_url("duckdb:///shop.db").relative_to(tmp_path).path == tmp_path / "shop.db"
    assert parse_url("sqlite:////data/shop.db").relative_to(tmp_path).text == "sqlite:////data/shop.db"


@pytest.mark.parametrize(
    ("text", "shown", "password"),
    [
        ("postgresql://anna:s%2Fcret@db:5432/shop", "postgresql://anna@db:5432/shop", "s/cret"),
        ("postgres://db/shop?sslmode=require&password=pw1", "postgresql://db/shop?sslmode=require", "pw1"),
        ("postgresql+psycopg2://anna@db/shop", "postgresql+psycopg2://anna@db/shop", None),
        ("postgresql://anna@/shop?host=/run/pg", "postgresql://anna@/shop?host=%2Frun%2Fpg", None),
        ("postgresql:///shop", "postgresql:///shop", None),
        ("mysql+pymysql://root:pw@[::1]:3306/shop", "mysql+pymysql://root@[::1]:3306/shop", "pw"),
    ],
)
def test_the_password_is_apart(text: str, shown: str, password: str | None) -> None:
    url = parse_url(text)
    assert url.text == shown
    assert url.password == password
    assert password is None or password not in repr(url)


def test_the_password_of_the_url_comes_before_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "from the environment")
    assert parse_url("postgresql://db/shop").with_password_of("SHOP_PASSWORD").password == "from the environment"
    assert parse_url("postgresql://:own@db/shop").with_password_of("SHOP_PASSWORD").password == "own"
    assert parse_url("postgresql://db/shop").with_password_of("NO_SUCH_VARIABLE").password is None


def test_messages_of_drivers_do_not_show_the_password() -> None:
    url = DatabaseUrl("postgresql://db/shop", "postgresql", password="s/cret")
    assert url.hide_password("no entry for s/cret, given as s%2Fcret") == "no entry for ***, given as ***"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not the URL of a database"),
        ("shop", "not the URL of a database"),
        ("nosql://host/shop", "'nosql' is not supported"),
        ("sqlite://shop.db", "names no host"),
        ("sqlite:///", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///shop.db?mode=rw", "options after"),
        ("postgresql://anna:top/secret@db/shop", "cannot be read"),
        ("postgresql://[::1/shop", "cannot be read"),
    ],
)
def test_what_is_no_url_is_an_error_without_a_part_of_a_password(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        parse_url(text)
    assert "secret" not in str(raised.value)
    assert "top" not in str(raised.value)


def test_the_path_of_a_database_file_leads_to_its_url(tmp_path: Path) -> None:
    for make, name in ((make_sqlite, "a.db"), (make_duckdb, "b.db")):
        url = make(tmp_path / name)
        with pytest.raises(UsageError) as raised:
            parse_url(str(tmp_path / name))
        assert raised.value.hint == f"Write its URL: {url}"
