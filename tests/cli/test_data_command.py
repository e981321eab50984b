"""`fewparse data`: download, import, list and path."""

from pathlib import Path

from fewparse.datasets.registry import DATASETS
from fewparse.example import Example
from support.cli_runner import CommandResult, fewparse
from support.file_server import DOMAINS, Misbehaviour, needs_real_data, original_form, original_name, serving
from support.file_server import real_original as original
from support.smcalflow_files import TurnRow, to_turn_lines

LOOPBACK = {"no_proxy": "*"}
NO_CALLS, NO_GEOQUERY, NO_OVERNIGHT, NO_SMCALFLOW = (
    f"{name} is not stored. Download it: fewparse data get {name}\n"
    for name in ("function-calls", "geoquery", "overnight", "smcalflow")
)


def small(folder: Path) -> Path:
    """Write a small domain of Overnight as SEMPRE files."""
    folder.mkdir()
    for part, count in (("train", 3), ("test", 1)):
        examples = [Example(f"utterance {i}", "(call f x)", "canonical") for i in range(count)]
        (folder / original_name("recipes", part)).write_text(original_form(examples))
    return folder


def test_path_prints_the_folder_of_the_environment_variable(tmp_path: Path) -> None:
    assert fewparse("data", "path", env={"FEWPARSE_DATA": str(tmp_path)}) == CommandResult(0, f"{tmp_path}\n", "")


def test_import_and_list_print_counts_and_folders(tmp_path: Path) -> None:
    source, environment = small(tmp_path / "source"), {"FEWPARSE_DATA": str(tmp_path / "data")}
    printed = f"overnight/recipes: 3 train, 1 test, in {tmp_path / 'data' / 'overnight' / 'recipes'}\n"
    ended = fewparse("data", "import", "overnight", str(source), env=environment)
    assert (ended.code, ended.out) == (0, printed)
    assert f"note: not in {source}: basketball, " in ended.err
    listed = CommandResult(0, NO_CALLS + NO_GEOQUERY + printed + NO_SMCALFLOW, "")
    assert fewparse("data", "list", env=environment) == listed
    assert fewparse("data", "list", "--data", str(tmp_path / "data")) == listed


def test_list_prints_how_to_download_what_is_not_stored(tmp_path: Path) -> None:
    ended = fewparse("data", "list", "--data", str(tmp_path))
    assert ended == CommandResult(0, NO_CALLS + NO_GEOQUERY + NO_OVERNIGHT + NO_SMCALFLOW, "")


def test_an_unknown_dataset_is_reported_with_suggestions() -> None:
    for arguments in (["get", "overnite"], ["import", "overnite", "."]):
        ended = fewparse("data", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert "unknown dataset 'overnite'" in ended.err
        assert "Did you mean overnight?" in ended.err


def test_an_error_in_a_file_is_shown_with_line_and_column(tmp_path: Path) -> None:
    source = small(tmp_path / "source")
    bad = source / original_name("recipes", "test")
    bad.write_text(bad.read_text()[:-10])
    ended = fewparse("data", "import", "overnight", str(source), "--data", str(tmp_path / "data"))
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {bad}:1:1: the file ends within this example" in ended.err
    assert "download it again" in ended.err
    assert not (tmp_path / "data").exists()


def test_a_mirror_without_the_files_is_reported_with_alternatives(tmp_path: Path) -> None:
    with serving() as mirror:
        ended = fewparse(
            *("data", "get", "overnight", "--from", mirror.address, "--data", str(tmp_path)), env=LOOPBACK
        )
    assert (ended.code, ended.out) == (1, "")
    first = DATASETS["overnight"].sources.files[0].path
    assert f"error: {mirror.address}/{first} cannot be downloaded: the server returned 404" in ended.err
    assert "fewparse data import NAME DIR" in ended.err
    assert mirror.requests == [(f"/{first}", None)]


def test_a_mirror_that_is_not_a_url_is_a_usage_error(tmp_path: Path) -> None:
    ended = fewparse("data", "get", "overnight", "--from", "file:///tmp", "--data", str(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "not a web address" in ended.err


@needs_real_data
def test_get_downloads_from_a_mirror_once_and_resumes_after_a_failure(tmp_path: Path) -> None:
    with serving() as mirror:
        for file in DATASETS["overnight"].sources.files:
            domain, _, part, _ = file.path.name.split(".")
            mirror.files[f"/{file.path}"] = original(domain, part)
        mirror.next = [Misbehaviour(drop_after=100_000)]
        environment = {**LOOPBACK, "FEWPARSE_OVERNIGHT_URL": mirror.address, "FEWPARSE_DATA": str(tmp_path)}
        ended = fewparse("data", "get", "overnight", env=environment)
        printed = "".join(
            f"overnight/{domain}: {train} train, {test} test, in {tmp_path / 'overnight' / domain}\n"
            for domain, (train, test) in DOMAINS.items()
        )
        assert ended == CommandResult(0, printed, "")
        assert [header for header in mirror.ranges if header] == ["bytes=100000-"]
        assert len(mirror.requests) == 17
        again = fewparse("data", "get", "overnight", env=environment)
        assert again == CommandResult(0, printed, "")
        assert len(mirror.requests) == 17
        forced = fewparse("data", "get", "overnight", "--force", env=environment)
        assert forced == CommandResult(0, printed, "")
        assert len(mirror.requests) == 33


def dialogues(folder: Path) -> Path:
    """Write SMCalFlow as single turns, with three dialogues and without the grammar."""
    folder.mkdir()
    turns = [TurnRow(f"dialogue-{i}", 0, f"utterance {i}", f"(f {i})") for i in range(3)]
    for name, chosen in (("train_300", turns[:1]), ("dev_200", turns[1:2]), ("dev_all", turns)):
        (folder / f"{name}.jsonl").write_bytes(to_turn_lines(chosen))
    return folder


def test_smcalflow_is_imported_and_listed_as_one_domain_with_its_optional_files(tmp_path: Path) -> None:
    source, data = dialogues(tmp_path / "source"), tmp_path / "data"
    note = "training examples: neither the authors' nor the substitute"
    printed = f"smcalflow: 1 train, 1 test, 2 full, in {data / 'smcalflow'}; {note}\n"
    ended = fewparse("data", "import", "smcalflow", str(source), "--data", str(data))
    assert (ended.code, ended.out) == (0, printed)
    assert f"note: {source / 'dev_200.jsonl'} has other turns than the official split" in ended.err
    assert f"note: not in {source}: dev_100.jsonl; dev_100.jsonl is not made\n" in ended.err
    assert "(of the authors' grammar)" in ended.err
    listed = fewparse("data", "list", "--data", str(data))
    assert listed == CommandResult(0, NO_CALLS + NO_GEOQUERY + NO_OVERNIGHT + printed, "")


def test_an_error_in_the_program_of_a_turn_is_shown_with_a_caret(tmp_path: Path) -> None:
    source, data = dialogues(tmp_path / "source"), tmp_path / "data"
    bad = source / "dev_all.jsonl"
    bad.write_text(bad.read_text().replace("(f 2)", "(f 2"))
    ended = fewparse("data", "import", "smcalflow", str(source), "--data", str(data))
    assert (ended.code, ended.out) == (1, "")
    assert (
        f"error: {bad}:3: the program of a turn is not an S-expression: dialogue-2,0:1:1: this ( is" in ended.err
    )
    assert "    (f 2\n    ^\n" in ended.err
    assert "download it again" in ended.err
    assert not data.exists()


def test_a_mirror_with_other_dialogues_is_rejected(tmp_path: Path) -> None:
    first = DATASETS["smcalflow"].sources.files[0]
    with serving() as mirror:
        mirror.files[f"/{first.path}"] = bytes(first.size or 0)
        environment = {**LOOPBACK, "FEWPARSE_SMCALFLOW_URL": mirror.address}
        ended = fewparse("data", "get", "smcalflow", "--data", str(tmp_path), env=environment)
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {mirror.address}/{first.path} is not the published file" in ended.err
    assert "fewparse data import NAME DIR" in ended.err


def test_the_help_lists_the_datasets_and_their_mirror_variables() -> None:
    ended = fewparse("data", "get", "--help")
    assert "overnight | smcalflow" in ended.out
    assert "$FEWPARSE_OVERNIGHT_URL" in ended.out
    assert "$FEWPARSE_SMCALFLOW_URL" in ended.out
