"""Correctness of programs, confidence intervals and paired tests, against known values."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.domains.load import load_domain
from fewparse.errors import DomainError
from fewparse.evaluate.metrics import Judge, Paired, Proportion, count, pair
from support.domain_files import write_domain

EXECUTOR = """\
def execute(program):
    if program == "fails":
        raise ValueError("it fails")
    return {"length": len(program)}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = 'name = "tiny"\nexecutor = "executor.py:execute"\n'
    return write_domain(tmp_path, settings, [{"utterance": "u", "program": "abc"}], {"executor.py": EXECUTOR})


def test_a_program_is_correct_if_it_has_the_answer_of_the_gold_one(folder: Path) -> None:
    judge = Judge(load_domain(folder))
    assert judge.is_correct("abc", "abc")
    assert judge.is_correct("xyz", "abc")
    assert not judge.is_correct("xy", "abc")


def test_a_program_that_fails_to_execute_is_wrong_even_if_the_gold_one_fails_too(folder: Path) -> None:
    judge = Judge(load_domain(folder))
    assert not judge.is_correct("fails", "abcde")
    assert not judge.is_correct("fails", "fails")


def test_a_missing_program_is_wrong(folder: Path) -> None:
    assert not Judge(load_domain(folder)).is_correct(None, "abc")


def test_without_an_executor_only_the_gold_program_is_correct(folder: Path) -> None:
    (folder / "domain.toml").write_text('name = "tiny"\n')
    judge = Judge(load_domain(folder))
    assert judge.is_correct("abc", "abc")
    assert not judge.is_correct("xyz", "abc")
    assert not judge.is_correct(None, "abc")


NORMAL_FORM = """\
def lower(program):
    if "(" not in program:
        raise ValueError("no program")
    return program.lower()
"""


@pytest.fixture
def normal(folder: Path) -> Path:
    (folder / "domain.toml").write_text('name = "tiny"\nnormal_form = "compare.py:lower"\n')
    (folder / "compare.py").write_text(NORMAL_FORM)
    return folder


def test_without_an_executor_programs_with_the_gold_normal_form_are_correct(normal: Path) -> None:
    judge = Judge(load_domain(normal))
    assert judge.is_correct("(F)", "(F)")
    assert judge.is_correct("(f)", "(F)")
    assert not judge.is_correct("(g)", "(F)")


def test_a_prediction_without_a_normal_form_is_wrong_even_if_it_is_the_gold_program(normal: Path) -> None:
    judge = Judge(load_domain(normal))
    assert not judge.is_correct("f", "(f)")
    assert not judge.is_correct("f", "f")
    assert not judge.is_correct("(f)", "f")
    assert not judge.is_correct(None, "(FenceScope)")


def test_answers_take_precedence_over_normal_forms(normal: Path) -> None:
    settings = (normal / "domain.toml").read_text()
    (normal / "domain.toml").write_text(settings + 'executor = "executor.py:execute"\n')
    judge = Judge(load_domain(normal))
    assert judge.is_correct("xyz", "abc")
    assert not judge.is_correct("fails", "fails")


CRITERIA = {
    "answer": 'executor = "executor.py:execute"\nnormal_form = "compare.py:lower"\n',
    "normal form": 'normal_form = "compare.py:lower"\n',
    "text": "",
}


@pytest.mark.parametrize(("criterion", "settings"), CRITERIA.items())
def test_the_criterion_depends_on_the_settings_of_the_domain(criterion: str, settings: str, normal: Path) -> None:
    (normal / "domain.toml").write_text('name = "tiny"\n' + settings)
    assert Judge(load_domain(normal)).criterion == criterion


def test_a_normal_form_may_be_a_function_of_an_installed_module(normal: Path) -> None:
    lispress = 'normal_form = "fewparse.datasets.smcalflow.lispress:normal_form"\n'
    (normal / "domain.toml").write_text('name = "tiny"\n' + lispress)
    judge = Judge(load_domain(normal))
    assert judge.is_correct("(F :b 1 :a #(Number 2))", "(F :a 2.0 :b 1.0)")
    assert not judge.is_correct("(F :b 1 :a 2", "(F :a 2 :b 1)")
    assert not judge.is_correct("(FenceScope", "(FenceScope)")


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ("compare.py:upper", "the normal form compare.py has no function `upper`"),
        ("missing.py:lower", "the normal form missing.py cannot be loaded: FileNotFoundError"),
        ("compare.py", "`normal_form`: "),
    ],
)
def test_a_normal_form_that_cannot_be_loaded_is_an_error_of_the_domain(
    chosen: str, problem: str, normal: Path
) -> None:
    settings = f'name = "tiny"\nnormal_form = "{chosen}"\n[constraint]\nkind = "trie"\n'
    (normal / "domain.toml").write_text(settings)
    with pytest.raises(DomainError, match=re.escape(problem)):
        load_domain(normal).check()


@pytest.mark.parametrize(
    ("correct", "items", "low", "high"),
    [(10, 20, 0.2993, 0.7007), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_the_interval_is_wilsons(correct: int, items: int, low: float, high: float) -> None:
    assert list(Proportion(correct, items).interval()) == pytest.approx([low, high], abs=1e-4)


@given(st.integers(0, 400), st.integers(1, 400))
def test_an_interval_contains_its_share_and_stays_within_0_and_1(correct: int, items: int) -> None:
    proportion = Proportion(min(correct, items), items)
    low, high = proportion.interval()
    assert 0 <= low <= proportion.value + 1e-12
    assert proportion.value - 1e-12 <= high <= 1
    assert low < high


def test_without_items_the_interval_is_everything() -> None:
    assert Proportion(0, 0).value == 0
    assert Proportion(0, 0).interval() == (0.0, 1.0)


@pytest.mark.parametrize(("first", "second", "p"), [(0, 0, 1.0), (5, 5, 1.0), (8, 0, 2 / 256), (9, 1, 22 / 1024)])
def test_the_p_value_is_that_of_the_exact_sign_test(first: int, second: int, p: float) -> None:
    assert Paired(first, second).p_value == pytest.approx(p)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_pairs_are_counted_item_by_item(flags: list[tuple[bool, bool]]) -> None:
    paired = pair([a for a, _ in flags], [b for _, b in flags])
    assert paired.only_first - paired.only_second == sum(a for a, _ in flags) - sum(b for _, b in flags)
    assert paired.only_first + paired.only_second == sum(a != b for a, b in flags)
    assert math.isclose(paired.p_value, Paired(paired.only_second, paired.only_first).p_value)


def test_systems_with_different_numbers_of_items_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="shorter"):
        pair([True, False], [True])


def test_true_flags_are_counted() -> None:
    assert count([True, False, True]) == Proportion(2, 3)
