"""Finding domains by name, benchmark data, and options that replace settings of the domain."""

from pathlib import Path

import pytest

from fewparse import load_domain
from fewparse.domains.load import find_domain, known_domains
from fewparse.errors import DataUnavailable, DomainError, UnknownName, UsageError
from fewparse.vocabulary import BYTES
from support.domain_files import to_json_lines

OVERNIGHT = [name for name in known_domains() if name.startswith("overnight/")]
BENCHMARKS = {**dict.fromkeys(OVERNIGHT, "overnight"), "smcalflow": "smcalflow"}
PAIRS = [("how many", "(count)"), ("which ones", "(list)"), ("who", "(who)")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that holds a very small `overnight/blocks`."""
    folder = tmp_path / "overnight" / "blocks"
    folder.mkdir(parents=True)
    examples = [{"utterance": u, "canonical": f"output {p}", "program": p} for u, p in PAIRS]
    (folder / "examples.jsonl").write_text(to_json_lines(examples))
    (folder / "test.jsonl").write_text(to_json_lines(examples[:1]))
    outputs = [{"canonical": f"output {p}", "program": p} for p in ("(other)", *(p for _, p in PAIRS))]
    (folder / "language.jsonl").write_text(to_json_lines(outputs))
    return tmp_path


def test_the_eight_domains_of_overnight_are_known() -> None:
    assert len(OVERNIGHT) == 8
    assert "overnight/calendar" in OVERNIGHT


@pytest.mark.parametrize(("name", "dataset"), BENCHMARKS.items())
def test_the_error_for_missing_examples_of_a_benchmark_has_the_download_command(
    name: str, dataset: str, tmp_path: Path
) -> None:
    with pytest.raises(DataUnavailable, match=f"fewparse data get {dataset}") as caught:
        load_domain(name, tmp_path)
    assert name in caught.value.message


def test_smcalflow_has_its_settings_in_the_package_and_its_examples_in_the_data_folder(tmp_path: Path) -> None:
    domain = find_domain("smcalflow", tmp_path)
    assert (domain.name, domain.data) == ("smcalflow", tmp_path / "smcalflow")
    assert (domain.folder / "domain.toml").exists()
    assert domain.constraint_kind.synchronous


@pytest.mark.parametrize("name", OVERNIGHT)
def test_execution_needs_no_examples(name: str, tmp_path: Path) -> None:
    domain = find_domain(name, tmp_path)
    assert domain.name == name
    assert domain.execute("(call listValue (number 3))") == "(list (number 3))"


@pytest.mark.parametrize("name", ["overnight", "overnight/", "overnight/blokcs", "overnight/blocks/"])
def test_another_name_below_overnight_is_unknown(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        load_domain(name, tmp_path)


def test_a_misspelt_name_is_reported_with_the_most_similar_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean overnight/blocks"):
        load_domain("overnight/blokcs", tmp_path)


def test_the_data_folder_may_come_from_the_environment(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_DATA", str(data))
    assert load_domain("overnight/blocks") == load_domain("overnight/blocks", data)


def test_the_outputs_of_a_trie_may_include_more_than_the_examples(data: Path) -> None:
    domain = load_domain("overnight/blocks", data)
    domain.check()
    constraint = domain.constraint(BYTES, "canonical")
    assert constraint.accepts(b"output (other)")
    assert not constraint.accepts(b"output (unknown)")
    assert domain.program_of("output (other)", "canonical") == "(other)"
    assert domain.program_of("output (unknown)", "canonical") is None


def test_the_pool_is_the_first_examples_and_the_rest_is_spare(data: Path) -> None:
    domain = load_domain("overnight/blocks", data, pool=2)
    assert [example.program for example in domain.examples] == ["(count)", "(list)"]
    assert [example.program for example in domain.spare_examples] == ["(who)"]
    assert [example.program for example in load_domain("overnight/blocks", data).spare_examples] == []


@pytest.mark.parametrize("pool", [0, 4])
def test_a_pool_size_out_of_range_is_rejected(pool: int, data: Path) -> None:
    with pytest.raises(UsageError, match=f"the pool is {pool} of 3 examples"):
        load_domain("overnight/blocks", data, pool=pool)


def test_the_constraint_of_a_domain_can_be_replaced(data: Path) -> None:
    induced = load_domain("overnight/blocks", data, constraint="induced")
    constraint = induced.constraint(BYTES, "program")
    assert constraint.accepts(b"(who)")
    assert not constraint.accepts(b"(other)")
    with pytest.raises(UsageError, match="use the target `program`"):
        induced.check("canonical")


def test_a_missing_or_invalid_file_of_outputs_is_an_error(data: Path) -> None:
    path = data / "overnight" / "blocks" / "language.jsonl"
    path.write_text('{"canonical": "x"}\n')
    with pytest.raises(DomainError, match=r"language\.jsonl:1:1: `program` is missing"):
        load_domain("overnight/blocks", data).check()
    path.write_text('{"program": "(other)"}\n')
    with pytest.raises(UsageError, match="lacks canonical utterances"):
        load_domain("overnight/blocks", data).check()
    load_domain("overnight/blocks", data).check("program")
    path.unlink()
    with pytest.raises(DomainError, match=r"language\.jsonl: there is no such file"):
        load_domain("overnight/blocks", data).check()
