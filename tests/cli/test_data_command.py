"""`fewparse data`: fetching, importing, and what is there."""

from pathlib import Path

from fewparse.datasets.published import read_sources
from fewparse.example import Example
from support.cli_runner import Ended, fewparse
from support.file_server import DOMAINS, Misbehaviour, needs_real_data, original_form, original_name, serving
from support.file_server import real_original as original
from support.smcalflow_files import Said, turn_form

LOOPBACK = {"no_proxy": "*"}
NO_SMCALFLOW = "smcalflow is not there. Get it: fewparse data get smcalflow\n"


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
    assert fewparse("data", "list", env=environment) == Ended(0, f"overnight {told}{NO_SMCALFLOW}", "")
    assert fewparse("data", "list", "--data", str(tmp_path / "data")) == Ended(
        0, f"overnight {told}{NO_SMCALFLOW}", ""
    )


def test_list_tells_how_to_get_what_is_not_there(tmp_path: Path) -> None:
    ended = fewparse("data", "list", "--data", str(tmp_path))
    assert ended == Ended(0, f"overnight is not there. Get it: fewparse data get overnight\n{NO_SMCALFLOW}", "")


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
    first = read_sources("overnight").files[0].path
    assert f"error: {mirror.address}/{first} cannot be fetched: the server returned 404" in ended.err
    assert "fewparse data import NAME DIR" in ended.err
    assert mirror.requests == [(f"/{first}", None)]


def test_a_mirror_that_is_no_web_address_is_misuse(tmp_path: Path) -> None:
    ended = fewparse("data", "get", "overnight", "--from", "file:///tmp", "--data", str(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "not a web address" in ended.err


@needs_real_data
def test_get_fetches_from_a_mirror_once_and_carries_on_what_breaks(tmp_path: Path) -> None:
    with serving() as mirror:
        for file in read_sources("overnight").files:
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
        assert len(mirror.requests) == 17
        again = fewparse("data", "get", "overnight", env=environment)
        assert again == Ended(0, told, "")
        assert len(mirror.requests) == 17
        forced = fewparse("data", "get", "overnight", "--force", env=environment)
        assert forced == Ended(0, told, "")
        assert len(mirror.requests) == 33


def dialogues(folder: Path) -> Path:
    """SMCalFlow as single turns, with three dialogues and none of the grammar."""
    folder.mkdir()
    turns = [Said(f"dialogue-{i}", 0, f"utterance {i}", f"(f {i})") for i in range(3)]
    for name, chosen in (("train_300", turns[:1]), ("dev_200", turns[1:2]), ("dev_all", turns)):
        (folder / f"{name}.jsonl").write_bytes(turn_form(chosen))
    return folder


def test_smcalflow_is_imported_and_listed_as_one_domain_with_all_its_files(tmp_path: Path) -> None:
    source, data = dialogues(tmp_path / "source"), tmp_path / "data"
    told = f"smcalflow: 1 train, 1 test, 2 full, in {data / 'smcalflow'}\n"
    ended = fewparse("data", "import", "smcalflow", str(source), "--data", str(data))
    assert (ended.code, ended.out) == (0, told)
    assert f"note: {source / 'train_300.jsonl'} has other turns than it should" in ended.err
    assert f"note: not in {source}: dev_100.jsonl; so dev_100.jsonl cannot be made\n" in ended.err
    assert "(of the authors' grammar)" in ended.err
    listed = fewparse("data", "list", "--data", str(data))
    assert listed == Ended(0, f"overnight is not there. Get it: fewparse data get overnight\n{told}", "")


def test_a_turn_with_a_bad_program_is_shown_with_its_place(tmp_path: Path) -> None:
    source, data = dialogues(tmp_path / "source"), tmp_path / "data"
    bad = source / "dev_all.jsonl"
    bad.write_text(bad.read_text().replace("(f 2)", "(f 2"))
    ended = fewparse("data", "import", "smcalflow", str(source), "--data", str(data))
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {bad}:3: the program of a turn is no S-expression: dialogue-2,0:1:1: this ( is" in ended.err
    assert "    (f 2\n    ^\n" in ended.err
    assert "fetch it again" in ended.err
    assert not data.exists()


def test_a_mirror_that_has_other_dialogues_is_refused(tmp_path: Path) -> None:
    first = read_sources("smcalflow").files[0]
    with serving() as mirror:
        mirror.files[f"/{first.path}"] = bytes(first.size)
        environment = {**LOOPBACK, "FEWPARSE_SMCALFLOW_URL": mirror.address}
        ended = fewparse("data", "get", "smcalflow", "--data", str(tmp_path), env=environment)
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {mirror.address}/{first.path} is not the published file" in ended.err
    assert "fewparse data import NAME DIR" in ended.err


def test_the_help_names_the_datasets_and_their_mirrors() -> None:
    ended = fewparse("data", "get", "--help")
    assert "overnight | smcalflow" in ended.out
    assert "$FEWPARSE_OVERNIGHT_URL" in ended.out
    assert "$FEWPARSE_SMCALFLOW_URL" in ended.out
