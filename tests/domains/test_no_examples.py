"""A domain without examples: everything works that does not need them."""

from pathlib import Path

import pytest

from fewparse import Domain, Parser, UsageError, load_domain, load_split, parser_systems, run_evaluation
from fewparse.domains.check import check_domain
from fewparse.evaluate.baselines import baselines
from fewparse.retrieve.retriever import RETRIEVERS
from support.domain_files import to_json_lines, write_domain
from support.letters_domain import EXAMPLES, GRAMMAR, SETTINGS
from support.toy_model import LongContextToyModel


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    """The domain of letters with a test set and no training examples."""
    held_out = to_json_lines({"utterance": u, "program": p} for u, p in EXAMPLES)
    return load_domain(write_domain(tmp_path, SETTINGS, (), {"grammar.lark": GRAMMAR, "test.jsonl": held_out}))


@pytest.mark.parametrize("retriever", sorted(RETRIEVERS))
def test_it_parses_with_every_retriever(domain: Domain, retriever: str) -> None:
    parse = Parser.from_domain(domain, LongContextToyModel(), retriever=retriever, rerank=1.0).parse("one")
    assert parse.program is not None
    assert (parse.examples, parse.examples_dropped) == ((), 0)


def test_it_is_checked_and_evaluated(domain: Domain) -> None:
    report = check_domain(domain)
    assert report.passed
    assert report.checked == {"examples": 0, "held-out examples": 3}
    model = LongContextToyModel()
    assert list(baselines(domain, "program", model, 0)) == []
    items = load_split(domain, "test")
    (result,) = run_evaluation(domain, parser_systems(domain, model, {"greedy": {}}), items, "test")
    assert len(result.records) == 3
    assert all(record.failure is None for record in result.records)


def test_what_needs_examples_says_so(domain: Domain) -> None:
    with pytest.raises(UsageError, match="has no examples"):
        load_split(domain, "train")
    with pytest.raises(UsageError, match="the pool is 1 of 0 examples"):
        load_domain(domain.folder, pool=1)
