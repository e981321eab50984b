"""The eight domains of Overnight end to end: examples, constraints, parsing and execution."""

from pathlib import Path

import pytest

from fewparse import Parser, load_domain
from fewparse.datasets.overnight.executor import denote
from fewparse.datasets.overnight.world import WORLDS, load_world
from fewparse.example import Target
from fewparse.grammar.analysis.sampling import sample_sentences
from fewparse.lm.embedded import EmbeddedModel
from fewparse.vocabulary import BYTES

COUNTS = {
    "basketball": (1561, 391, 252),
    "blocks": (1596, 399, 469),
    "calendar": (669, 168, 196),
    "housing": (752, 189, 231),
    "publications": (640, 161, 149),
    "recipes": (864, 216, 124),
    "restaurants": (1325, 332, 339),
    "socialnetwork": (3535, 884, 624),
}
POOL = 200


@pytest.mark.parametrize("name", WORLDS)
def test_a_domain_has_its_published_examples_and_a_pool_of_the_first_200(name: str, overnight_data: Path) -> None:
    train, test, meanings = COUNTS[name]
    domain = load_domain(f"overnight/{name}", overnight_data)
    assert len(domain.examples) == POOL
    assert len(domain.spare_examples) == train - POOL
    assert len(domain.test_examples) == test
    assert (
        len({m.program for m in domain.known_outputs})
        == len({m.canonical for m in domain.known_outputs})
        == meanings
    )


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("target", ["canonical", "program"])
def test_the_constraint_accepts_the_output_of_every_test_item_and_maps_it_to_its_program(
    name: str, target: Target, overnight_data: Path
) -> None:
    domain = load_domain(f"overnight/{name}", overnight_data)
    domain.check(target)
    constraint = domain.constraint(BYTES, target)
    for item in domain.test_examples:
        assert constraint.accepts(item.output(target).encode())
        assert domain.program_of(item.output(target), target) == item.program


@pytest.mark.parametrize("name", ["calendar", "recipes"])
def test_an_induced_constraint_accepts_the_training_programs_and_new_ones(name: str, overnight_data: Path) -> None:
    domain = load_domain(f"overnight/{name}", overnight_data, constraint="induced")
    domain.check("program")
    constraint = domain.constraint(BYTES, "program")
    training = {example.program for example in domain.examples}
    assert all(constraint.accepts(program.encode()) for program in training)
    beyond = {item.program for item in domain.test_examples} - training
    assert any(constraint.accepts(program.encode()) for program in beyond)
    new = set(sample_sentences(domain.grammar, 100, seed=0)) - {
        meaning.program for meaning in domain.known_outputs
    }
    assert all(constraint.accepts(program.encode()) for program in new)
    assert any(denote(program, load_world(name)).error is None for program in new)


@pytest.mark.parametrize(
    ("target", "constraint"), [("canonical", "trie"), ("program", "trie"), ("program", "induced")]
)
def test_a_question_is_parsed_and_executed(
    target: Target, constraint: str, overnight_data: Path, model: EmbeddedModel
) -> None:
    domain = load_domain("overnight/calendar", overnight_data, constraint=constraint)
    parser = Parser.from_domain(domain, model, target=target, examples=2, decoder="greedy")
    item = domain.examples[1]
    parse = parser.parse(item.utterance)
    assert parse.program is not None
    assert parse.output == (parse.program if target == "program" else parse.candidates[0].text)
    assert (parse.answer is None) == (parse.answer_error is not None)
    assert parse.answer is None or parse.answer.startswith("(list")
