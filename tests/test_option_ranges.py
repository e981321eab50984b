"""Numeric options have one range in domain.toml, on the command line and in Python."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from fewparse import Parser
from fewparse.domains.load import load_domain
from fewparse.errors import DomainError, UsageError
from fewparse.options import Options
from fewparse.search.settings import RANGES, SearchSettings
from support.cli_runner import HALL, fewparse, without_model
from support.domain_files import copy_starter
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel

HUGE = 10**12
WRONG: dict[str, tuple[object, ...]] = {
    "width": (0, -1, HUGE, 2.5, "5", True, 10**5000),
    "temperature": (-0.1, 11, math.nan, math.inf, "1", 10**5000),
    "max_tokens": (0, HUGE, 1.5, math.nan, [1]),
    "rounds": (0, HUGE, math.inf),
    "seed": (-1, 2**64, 0.5, b"1"),
    "alternatives": (-1, HUGE, {}),
    "margin": (-1, math.nan),
    "rerank": (-1, 101, math.nan, math.inf, -math.inf, "4"),
    "examples": (-1, HUGE, math.nan, "10"),
    "description_lines": (-1, HUGE, 1.5, "10"),
    "n_best": (0, HUGE, math.inf),
    "max_risk": (-0.1, 1.1, math.nan, "0.05"),
}
CASES = [(name, value) for name, values in WRONG.items() for value in values]


def test_every_numeric_option_is_tested_here() -> None:
    assert set(WRONG) == set(RANGES)


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_a_wrong_number_in_python_is_a_usage_error(name: str, value: Any, tmp_path: Path) -> None:
    options: Any = {name: value}
    with pytest.raises(UsageError, match=f"the {name} is .*; it must be a"):
        Parser.from_domain(make_letters(tmp_path), LongContextToyModel(), **options)


@pytest.mark.parametrize("name", ["width", "temperature", "max_tokens", "rerank", "examples"])
@pytest.mark.parametrize(
    "value", ["-1", "1000000000000", f"0x{'f' * 6000}", "nan", "inf", "-inf", '"5"', "[]", "{ x = 1 }"]
)
def test_a_wrong_number_in_the_settings_is_a_domain_error(name: str, value: str, tmp_path: Path) -> None:
    folder = copy_starter(tmp_path / "home")
    settings = re.sub(r"^(width|examples|rerank) = .*\n", "", (folder / "domain.toml").read_text(), flags=re.M)
    table = "retrieve" if name == "examples" else "search"
    (folder / "domain.toml").write_text(settings.replace(f"[{table}]", f"[{table}]\n{name} = {value}"))
    with pytest.raises(DomainError, match=f"{table}.{name}"):
        load_domain(folder)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--rerank", value) for value in ("nan", "inf", "1e400", "101")),
        *(("--temperature", value) for value in ("nan", "inf", "-inf")),
        *((option, "1000000000000") for option in ("--width", "--max-tokens", "--examples", "--n-best", "--seed")),
        ("--pool", "1000000000000"),
        ("--width", "9" * 5000),
    ],
)
def test_a_wrong_number_on_the_command_line_is_a_usage_error(option: str, value: str, tmp_path: Path) -> None:
    ended = fewparse("parse", "starter", HALL, option, value, env=without_model(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "error" in ended.err.lower()


def test_the_limits_themselves_are_accepted(tmp_path: Path) -> None:
    domain = make_letters(tmp_path)
    for name, (_, low, high) in RANGES.items():
        for value in (low, high):
            options: Any = {name: value}
            Options.resolve(domain, **options)


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert SearchSettings(width=numpy.int64(3), temperature=numpy.float32(0.5)).width == 3
