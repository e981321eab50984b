"""The best output is exact: compared with scores of all outputs by the chain rule, on an exact model."""

import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.conftest import lamp_table
from fewparse.errors import ResultsError, UsageError
from fewparse.evaluate.metrics import Proportion
from fewparse.experiment.plan import make_plan
from fewparse.experiment.results import CellResult, Results
from fewparse.experiment.run import run_experiment
from fewparse.experiment.search_errors import best_text, cell_parser, finite_cells, search_errors, token_tree
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from support.experiment_results import make_cell, make_results
from support.lamp_domain import OUTPUTS, canonical
from support.toy_model import ANYTHING, END, LongContextToyModel, ends

STRINGS = [canonical(program) for program in OUTPUTS]


@pytest.fixture(scope="module")
def results(lamp_folder: Path, tmp_path_factory: pytest.TempPathFactory, model: EmbeddedModel) -> Results:
    plan = make_plan(lamp_table(lamp_folder, decoder=["greedy", "beam"], width=16))
    return run_experiment(plan, tmp_path_factory.mktemp("results"), lambda name: nullcontext(model))


def toy_score(model: LongContextToyModel, prompt: list[int], text: str) -> float:
    """Return the normalised log-probability of a text by the chain rule."""
    tokens = list(text.encode())
    rows = [model.logprobs(prompt + tokens[:i]) for i in range(len(tokens) + 1)]
    end = math.log(sum(math.exp(rows[-1][i]) for i in range(END + 1) if ends(i, b"\n")))
    total = sum(row[byte] for row, byte in zip(rows, tokens, strict=False)) + end
    return total / math.pow((5 + len(tokens) + 1) / 6, 0.7)


def toy_scores(model: LongContextToyModel, parser: Parser, utterance: str) -> dict[str, float]:
    """Return the score of every output."""
    prompt = list(parser.prompt(utterance)[1].text.encode())
    return {string: toy_score(model, prompt, parser.template.with_lead(string)) for string in STRINGS}


@pytest.mark.parametrize("seed", range(3))
def test_the_best_output_is_that_of_the_chain_rule(results: Results, lamp_folder: Path, seed: int) -> None:
    model = LongContextToyModel(seed)
    cell = results.cell_results[0]
    parser = Parser.from_domain(lamp_folder, model, allow_code=True)
    found = search_errors(parser, never_best(cell), "test")
    assert found.outputs == len(STRINGS)
    for each in found.shortfalls:
        expected = toy_scores(model, parser, each.item.utterance)
        assert each.best == max(expected, key=lambda string: expected[string])
        assert each.best_score == pytest.approx(expected[each.best])
        assert each.found is not None
        assert each.found_score == pytest.approx(expected[each.found])
        assert each.amount == pytest.approx(expected[each.best] - expected[each.found])


@given(st.sets(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=30), st.integers(0, 5))
def test_the_best_text_is_exact_for_any_set_of_texts(texts: set[str], seed: int) -> None:
    model = LongContextToyModel(seed)
    prompt = list(ANYTHING.text.encode())
    expected = {text: toy_score(model, prompt, text) for text in texts}
    best, score = best_text(model, model.vocabulary, ANYTHING, token_tree(model, sorted(texts)), b"\n")
    assert score == pytest.approx(max(expected.values()))
    assert expected[best] == pytest.approx(score)


def never_best(cell: CellResult) -> CellResult:
    """Return a cell whose recorded scores are lower than any true one, so that only exhaustive scores count."""
    records = tuple(
        record and replace(record, outputs=record.outputs[:1], model_scores=(-1e6,)) for record in cell.records
    )
    return replace(cell, records=records)


def test_a_beam_wider_than_the_set_of_outputs_makes_no_errors_beyond_the_tolerance(
    results: Results, model: EmbeddedModel
) -> None:
    beam = results.cell_results[1]
    parser = cell_parser(results, beam, model, None, True)
    assert search_errors(parser, beam, "test").rate_beyond_tolerance == Proportion(0, 2)


def test_an_output_that_is_not_the_best_is_an_error(results: Results, model: EmbeddedModel) -> None:
    beam = results.cell_results[1]
    parser = cell_parser(results, beam, model, None, True)
    worst = tuple(
        record and replace(record, outputs=record.outputs[-1:], model_scores=record.model_scores[-1:])
        for record in beam.records
    )
    found = search_errors(parser, replace(beam, records=worst), "test")
    assert found.rate == found.rate_beyond_tolerance == Proportion(2, 2)
    assert search_errors(parser, replace(beam, records=worst), "test", 1000.0).rate_beyond_tolerance.correct == 0


def test_finding_nothing_is_an_error_and_failed_items_are_left_out(results: Results, model: EmbeddedModel) -> None:
    beam = results.cell_results[1]
    first, second = beam.records
    assert first is not None
    assert second is not None
    nothing = replace(first, outputs=(), model_scores=())
    parser = cell_parser(results, beam, model, None, True)
    records = (nothing, replace(second, failure="no answer"))
    assert search_errors(parser, replace(beam, records=records), "test").rate == Proportion(1, 1)


def test_the_cells_are_those_with_a_finite_set_of_outputs_and_a_local_model(
    results: Results, lamp_folder: Path
) -> None:
    assert {model: len(cells) for model, cells in finite_cells(results).items()} == {"embedded": 2}
    with pytest.raises(UsageError, match="no cell has a finite set"):
        finite_cells(make_results(make_cell([True])))


def test_a_set_that_is_not_finite_is_refused(results: Results, lamp_folder: Path, model: EmbeddedModel) -> None:
    parser = Parser.from_domain(lamp_folder, model, allow_code=True, constrained=False)
    with pytest.raises(UsageError, match="not finite"):
        search_errors(parser, results.cell_results[0], "test")


def test_a_domain_that_has_changed_is_refused(results: Results, model: EmbeddedModel) -> None:
    cell = results.cell_results[0]
    entry = replace(cell.entry, settings={**cell.settings, "examples_sha256": "another"})
    with pytest.raises(ResultsError, match="has changed: examples_sha256"):
        cell_parser(results, replace(cell, entry=entry), model, None, True)
