"""The description of a domain in prompts: where it comes from, and how much of it is shown."""

from pathlib import Path

import pytest

from fewparse import DomainError, Parser, load_domain
from support.domain_files import write_domain
from support.letters_domain import EXAMPLES, GRAMMAR, SETTINGS
from support.toy_model import LongContextToyModel

TABLES = [
    "songs(title, artist, length)",
    "cities(name, country, population)",
    "flights(number, departure, arrival)",
    "recipes(dish, ingredients)",
]


def describe(folder: Path, description: str | None, settings: str = "", examples: int = 2) -> Parser:
    """Return a parser of the domain of letters with a description, under the prompt that shows it."""
    shown = f'description = "Small letters."\nprompt = "chatml-description"\n{settings}' + SETTINGS
    pairs = [{"utterance": u, "program": p} for u, p in EXAMPLES]
    files = {"grammar.lark": GRAMMAR} | ({} if description is None else {"description.txt": description})
    domain = load_domain(write_domain(folder, shown, pairs, files))
    return Parser.from_domain(domain, LongContextToyModel(), examples=examples)


def shown_lines(parser: Parser, utterance: str) -> list[str]:
    """Return the lines of the description in the prompt for an utterance."""
    system = parser.prompt(utterance)[1].messages[0].content
    *lines, instruction = system.split("\n")
    assert instruction == "Translate each request into a program."
    return lines


def test_it_is_that_of_domain_toml_and_then_the_lines_of_the_file(tmp_path: Path) -> None:
    parser = describe(tmp_path, "\n".join(["", *TABLES, ""]))
    assert shown_lines(parser, "one") == ["Small letters.", *TABLES]
    assert parser.parse("one").as_dict()["description_lines_dropped"] == 0


def test_without_a_file_it_is_that_of_domain_toml(tmp_path: Path) -> None:
    assert shown_lines(describe(tmp_path, None), "one") == ["Small letters."]


def test_a_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    describe(folder, "")
    (folder / "description.txt").write_bytes(b"\xff")
    with pytest.raises(DomainError, match=r"description\.txt: not UTF-8 text"):
        load_domain(folder).check()


@pytest.mark.parametrize(
    ("utterance", "line"),
    [("which artist sings the song", 0), ("the population of the country", 1), ("what dish do I cook", 3)],
)
def test_if_not_all_lines_may_be_shown_they_are_the_most_similar_ones(
    tmp_path: Path, utterance: str, line: int
) -> None:
    parser = describe(tmp_path, "\n".join(TABLES))
    for limit, expected in ((1, [TABLES[line]]), (0, []), (4, TABLES)):
        limited = Parser.from_domain(parser.domain, LongContextToyModel(), description_lines=limit)
        assert shown_lines(limited, utterance) == ["Small letters.", *expected]
        assert limited.prompt(utterance)[1].lines_dropped == 0


def test_lines_that_do_not_fit_are_dropped_and_counted_and_the_rest_stays_in_order(tmp_path: Path) -> None:
    parser = describe(tmp_path, "\n".join(TABLES), examples=0)
    longest = parser.model.prompt_length(parser.prompt("the population of the country")[1])
    model = LongContextToyModel()
    model.context_length = longest - 1 + parser.options.search.max_tokens
    shorter = Parser.from_domain(parser.domain, model, examples=0)
    shown = shown_lines(shorter, "the population of the country")[1:]
    assert len(shown) == 3
    assert TABLES[1] in shown
    assert shown == [line for line in TABLES if line in shown]
    parse = shorter.parse("the population of the country")
    assert (parse.prompt.lines_dropped, parse.as_dict()["description_lines_dropped"]) == (1, 1)


def test_examples_keep_half_of_the_context(tmp_path: Path) -> None:
    many = [f"{word} {i}" for i in range(300) for word in ("songs", "cities")]
    parser = describe(tmp_path, "\n".join(many), "\n", examples=2)
    limited = Parser.from_domain(parser.domain, LongContextToyModel(), examples=2, description_lines=600)
    examples, prompt = limited.prompt("one")
    assert len(examples) == 2
    assert prompt.lines_dropped > 0
    assert limited.model.prompt_length(prompt) < 0.6 * limited.model.context_length
