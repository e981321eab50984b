"""The dataset function-calls: import, names of functions, and correctness by accepted values."""

import json
from pathlib import Path

import pytest

from fewparse import Judge, load_domain
from fewparse.datasets.registry import DATASETS
from fewparse.errors import DataError
from support.domain_files import to_json_lines
from support.function_call_items import item_rows, published_rows

DOMAIN = "function-calls/simple"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with five items, whose functions are declared in two ways under one name."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "simple.jsonl").write_text(to_json_lines(item_rows(5, ("Weather of a city.", "A forecast."))))
    DATASETS["function-calls"].import_from(source, tmp_path / "data")
    return tmp_path / "data"


def test_functions_that_are_declared_differently_have_distinct_names(data: Path) -> None:
    functions = json.loads((data / DOMAIN / "functions.json").read_text())["functions"]
    assert [(f["name"], f["description"]) for f in functions] == [
        ("weather.get", "Weather of a city."),
        ("weather.get_2", "A forecast."),
    ]


def test_every_fourth_item_is_a_test_item(data: Path) -> None:
    domain = load_domain(DOMAIN, data)
    assert [example.program for example in domain.test_examples] == [
        'weather.get(city="Paris, France", days=0)',
        'weather.get(city="Paris, France", days=4)',
    ]
    assert [example.program for example in domain.examples] == [
        'weather.get_2(city="Paris, France", days=1)',
        'weather.get(city="Paris, France", days=2)',
        'weather.get_2(city="Paris, France", days=3)',
    ]
    assert domain.data_notes == ("items: 5 of 400 published",)


@pytest.mark.parametrize(
    ("program", "correct"),
    [
        ('weather.get(city="paris", days=0)', True),
        ('weather.get(days=0, city="Paris France")', True),
        ('{"name": "weather.get", "arguments": {"city": "Paris", "days": 0}}', True),
        ('weather.get(city="Paris", days=0, place={"country": "FR"})', True),
        ('weather.get(city="Paris", days=0, place={"zip": "75000"})', False),
        ('weather.get(city="Paris", days=0, place={"country": "Italy"})', False),
        ('weather.get(city="Paris", days=false)', False),
        ('weather.get(city="Paris", days=1)', False),
        ('weather.get(city="Paris")', False),
        ('weather.get_2(city="Paris", days=0)', False),
        ('weather.get(city="Paris", days=0, more=1)', False),
        ('weather.get(city="Paris"', False),
        (None, False),
    ],
)
def test_a_call_is_correct_if_its_values_are_accepted(data: Path, program: str | None, correct: bool) -> None:
    domain = load_domain(DOMAIN, data)
    judge = Judge(domain)
    assert judge.criterion == "accepted values"
    assert judge.is_correct(program, domain.test_examples[0].program) is correct


def test_a_gold_program_that_is_not_listed_accepts_the_same_call_only(data: Path) -> None:
    judge = Judge(load_domain(DOMAIN, data))
    assert judge.is_correct("weather.get(days=9, city=2)", "weather.get(city=2, days=9)")
    assert not judge.is_correct("weather.get(city=3, days=9)", "weather.get(city=2, days=9)")


def test_the_published_form_gives_the_same_examples(tmp_path: Path) -> None:
    for form in ("lines", "published"):
        (tmp_path / form / "possible_answer").mkdir(parents=True)
    (tmp_path / "lines" / "simple.jsonl").write_text(to_json_lines(item_rows(3)))
    name = "BFCL_v4_simple_python.json"
    questions, answers = published_rows(3)
    (tmp_path / "published" / name).write_text(to_json_lines(questions))
    (tmp_path / "published" / "possible_answer" / name).write_text(to_json_lines(answers))
    convert = DATASETS["function-calls"].convert
    assert convert(tmp_path / "lines").files == convert(tmp_path / "published").files


@pytest.mark.parametrize("broken", [{"utterance": ""}, {"functions": []}, {"accepted": [{}]}, {"accepted": 3}])
def test_an_item_without_its_parts_is_an_error_with_its_line(broken: dict[str, object], tmp_path: Path) -> None:
    first, second = item_rows(2)
    (tmp_path / "simple.jsonl").write_text(to_json_lines([first, {**second, **broken}]))
    with pytest.raises(DataError, match=r"simple\.jsonl:2.*not an item"):
        DATASETS["function-calls"].convert(tmp_path)
