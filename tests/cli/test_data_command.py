"""`fewparse data`: fetching, importing, and what is there."""

from pathlib import Path

from cli.running import Ended, fewparse
from data.serving import DOMAINS, Misbehaviour, needs_real_data, original_form, original_name, serving
from data.serving import real_original as original
from fewparse.data.overnight import read_sources
from fewparse.example import Example

LOOPBACK = {"no_proxy": "*"}


def small(folder: Path) -> Path:
    folder.mkdir()
    for part, count in (("train", 3), ("test", 1)):
        examples = [Example(f"utterance {i}", "(call f x)", "canonical") for i in range(count)]
        (folder / original_name("recipes", part)).write_text(original_form(examples))
    return folder


def test_path_is_that_of_the_environment(tmp_path: Path) -> None:
    assert fewparse("data", "path", env={"FEWPARSE_DATA": str(tmp_path)}) == Ended(0, f"{tmp_path}\n", "")


def test_import_tells_counts_and_place_and_list_tells_them_again(tmp_path: Path) -> None:
    source, environment = small(tmp_path / "source"), {"FEWPARSE_DATA": str(tmp_path / "data")}
    told = f"recipes: 3 train, 1 test, in {tmp_path / 'data' / 'overnight' / 'recipes'}\n"
    ended = fewparse("data", "import", "overnight", str(source), env=environment)
    assert (ended.code, ended.out) == (0, told)
    assert f"note: not in {source}: basketball, " in ended.err
    assert fewparse("data", "list", env=environment) == Ended(0, f"overnight {told}", "")
    assert fewparse("data", "list", "--data", str(tmp_path / "data")) == Ended(0, f"overnight {told}", "")


def test_list_tells_how_to_get_what_is_not_there(tmp_path: Path) -> None:
    ended = fewparse("data", "list", "--data", str(tmp_path))
    assert ended == Ended(0, "overnight is not there. Get it: fewparse data get overnight\n", "")


def test_an_unknown_dataset_is_named_with_the_known_ones() -> None:
    for arguments in (["get", "overnite"], ["import", "overnite", "."]):
        ended = fewparse("data", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert "unknown dataset 'overnite'" in ended.err
        assert "Did you mean overnight?" in ended.err


def test_a_bad_file_is_shown_with_its_place(tmp_path: Path) -> None:
    source = small(tmp_path / "source")
    bad = source / original_name("recipes", "test")
    bad.write_text(bad.read_text()[:-10])
    ended = fewparse("data", "import", "overnight", str(source), "--data", str(tmp_path / "data"))
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {bad}:1:1: the file ends within this example" in ended.err
    assert "fetch it again" in ended.err
    assert not (tmp_path / "data").exists()


def test_a_mirror_without_the_files_is_told_with_another_way(tmp_path: Path) -> None:
    with serving() as mirror:
        ended = fewparse(
            *("data", "get", "overnight", "--from", mirror.address, "--data", str(tmp_path)), env=LOOPBACK
        )
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {mirror.address}/{read_sources().files[0].path} cannot be fetched: the server answers 404" in (
        ended.err
    )
    assert "fewparse data import NAME DIR" in ended.err
    assert mirror.asked == [(f"/{read_sources().files[0].path}", None)]


def test_a_mirror_that_is_no_web_address_is_misuse(tmp_path: Path) -> None:
    ended = fewparse("data", "get", "overnight", "--from", "file:///tmp", "--data", str(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "no web address" in ended.err


@needs_real_data
def test_get_fetches_from_a_mirror_once_and_carries_on_what_breaks(tmp_path: Path) -> None:
    with serving() as mirror:
        for file in read_sources().files:
            domain, _, part, _ = file.path.name.split(".")
            mirror.files[f"/{file.path}"] = original(domain, part)
        mirror.next = [Misbehaviour(drop_after=100_000)]
        environment = {**LOOPBACK, "FEWPARSE_OVERNIGHT_URL": mirror.address, "FEWPARSE_DATA": str(tmp_path)}
        ended = fewparse("data", "get", "overnight", env=environment)
        told = "".join(
            f"{domain}: {train} train, {test} test, in {tmp_path / 'overnight' / domain}\n"
            for domain, (train, test) in DOMAINS.items()
        )
        assert ended == Ended(0, told, "")
        assert [header for header in mirror.ranges if header] == ["bytes=100000-"]
        assert len(mirror.asked) == 17
        again = fewparse("data", "get", "overnight", env=environment)
        assert again == Ended(0, told, "")
        assert len(mirror.asked) == 17
        forced = fewparse("data", "get", "overnight", "--force", env=environment)
        assert forced == Ended(0, told, "")
        assert len(mirror.asked) == 33
