"""Chosen settings are written into domain.toml, and nothing else in it changes."""

import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse.domains.domain import Domain
from fewparse.domains.load import find_domain
from fewparse.optimize.search import Choice
from fewparse.optimize.settings_file import (
    Change,
    NotWritten,
    changes_for,
    read_settings,
    with_changes,
    write_settings,
)
from fewparse.optimize.space import Configuration
from support.switch_domain import make_switches

SOURCE = """\
# The settings of the lamps.
name = "lamps"            # its name

[retrieve]
examples = 10             # a comment
order = "best-last"

# Between tables.
[search]
decoder   =   "beam"      # aligned by hand
# width = 3
"""
WRITTEN = """\
# The settings of the lamps.
name = "lamps"            # its name
target = "canonical"

[retrieve]
examples = 20             # a comment
order = "best-last"

# Between tables.
[search]
decoder   =   "speculative"      # aligned by hand
# width = 3
rerank = 4.0

[tuned]
width = 5
"""
CHANGES = (
    Change("", "target", "program", "canonical"),
    Change("retrieve", "examples", 10, 20),
    Change("search", "decoder", "beam", "speculative"),
    Change("search", "rerank", 0.0, 4.0),
    Change("tuned", "width", 5, 5),
)
PATH = Path("domain.toml")
PRESENT = Configuration("program", "all", 2, "best-last", "greedy", 1)


def test_comments_and_layout_are_kept() -> None:
    assert with_changes(SOURCE.encode(), CHANGES, PATH).decode() == WRITTEN


@pytest.mark.parametrize(
    "source",
    [
        'name = "lamps"',
        'name = "lamps"\nsearch.width = 3\nretrieve = { examples = 3 } # inline\n',
        '[search]\n[retrieve]\nexamples=3\n# name\n[tuned]\nwidth = 7\n[constraint]\nkind = "none"\n',
    ],
    ids=["no tables", "inline tables", "tables without a blank line"],
)
def test_values_are_written_into_every_form_of_table(source: str) -> None:
    name = "" if "name =" in source else 'name = "lamps"\n'
    written = with_changes((name + source).encode(), CHANGES, PATH).decode()
    table = tomllib.loads(written)
    for change in CHANGES:
        assert (table[change.table] if change.table else table)[change.key] == change.new
    for comment in ("# inline", "# name"):
        assert (comment in written) == (comment in source)


def test_windows_line_ends_are_kept() -> None:
    assert (
        with_changes(SOURCE.replace("\n", "\r\n").encode(), CHANGES, PATH)
        == WRITTEN.replace("\n", "\r\n").encode()
    )


@pytest.fixture
def home(tmp_path: Path) -> Domain:
    return make_switches(tmp_path / "home")


def test_only_what_differs_from_the_file_is_changed(home: Domain) -> None:
    chosen = replace(PRESENT, examples=5)
    changes = changes_for(home, Choice(chosen, 4.0), tuned=False)
    assert [(c.table, c.key, c.old, c.new) for c in changes] == [
        ("retrieve", "examples", 2, 5),
        ("search", "rerank", 0.0, 4.0),
    ]
    write_settings(home, read_settings(home), changes)
    again = find_domain(home.folder)
    assert changes_for(again, Choice(chosen, 4.0), tuned=False) == ()
    assert (again.table.retrieve.examples, again.table.search.rerank) == (5, 4.0)


def test_the_settings_of_the_tuned_model_are_in_their_own_table(home: Domain) -> None:
    tuned = replace(PRESENT, examples=0, decoder="beam")
    changes = changes_for(home, Choice(tuned, 1.5), tuned=True)
    assert [(c.table, c.key, c.new) for c in changes] == [("tuned", "decoder", "beam"), ("tuned", "rerank", 1.5)]


def test_what_a_tuned_model_inherits_stays_as_it_is(home: Domain) -> None:
    """[tuned] has the keys of [search] that it does not set: a change for the prompted model must not reach it."""
    home.adapter_path("program").touch()
    changes = changes_for(home, Choice(replace(PRESENT, width=10), 4.0), tuned=False)
    write_settings(home, read_settings(home), changes)
    table = find_domain(home.folder).table
    assert (table.search.width, table.search.rerank) == (10, 4.0)
    assert (table.search_for(True).width, table.search_for(True).rerank) == (1, 0.0)


def test_a_written_file_has_the_mode_of_the_old_one(home: Domain) -> None:
    path = home.folder / "domain.toml"
    path.chmod(0o640)
    write_settings(home, read_settings(home), [Change("search", "rerank", 0.0, 4.0)])
    assert path.stat().st_mode & 0o777 == 0o640


def refusal(domain: Domain, source: bytes, out: Path | None = None) -> str:
    """Return why a change is not written; the file must stay as it is."""
    before = read_settings(domain)
    with pytest.raises(NotWritten) as caught:
        write_settings(domain, source, [Change("search", "rerank", 0.0, 4.0)], out)
    assert read_settings(domain) == before
    return str(caught.value)


def test_a_read_only_file_is_not_written(home: Domain) -> None:
    (home.folder / "domain.toml").chmod(0o444)
    assert refusal(home, read_settings(home)).endswith("domain.toml is read-only")


def test_a_file_that_was_edited_during_the_search_is_not_written(home: Domain) -> None:
    source = read_settings(home)
    with (home.folder / "domain.toml").open("a") as file:
        file.write("# a remark\n")
    assert refusal(home, source).endswith("domain.toml has been edited meanwhile")


def test_a_bundled_domain_is_not_written_but_a_copy_is(tmp_path: Path) -> None:
    calendar = find_domain("calendar")
    source = read_settings(calendar)
    assert refusal(calendar, source) == "the domain calendar is part of an installed package"
    out = write_settings(calendar, source, [Change("search", "rerank", 4.0, 6.0)], tmp_path / "new.toml")
    assert out.read_bytes() == source.replace(b"width = 10\nrerank = 4.0", b"width = 10\nrerank = 6.0")
    assert "cannot be written" in refusal(calendar, source, tmp_path / "new.toml" / "below.toml")
    assert os.listdir(tmp_path) == ["new.toml"]
