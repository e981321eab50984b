"""Nothing that is parsed to compare settings has been seen: not in the prompt, the grammar, or the adapter."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import UsageError
from fewparse.evaluate.records import Records
from fewparse.example import Example
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import LanguageModel
from fewparse.optimize.axes import space_of
from fewparse.optimize.budget import Budget, OutOfTime
from fewparse.optimize.objective import HeldOutAlignment, HeldOutScorer
from fewparse.optimize.optimization import planned_space
from fewparse.optimize.parts import Parts, parts_of
from fewparse.optimize.search import Outcome
from fewparse.optimize.space import Configuration
from fewparse.options import NO_ADAPTER, Options
from fewparse.parser import Parser
from fewparse.rerank import Alignment
from support.adapters import write_adapter
from support.domain_files import write_domain
from support.extras import need_torch
from support.switch_domain import EXAMPLES, REPHRASED, SETTINGS, make_switches

DUPLICATE = Example(EXAMPLES[0].utterance.upper(), EXAMPLES[1].program)
WEIGHTS = (0.0, 1.0, 4.0)
ENOUGH = 1000.0
Outcomes = dict[tuple[Configuration, int], Outcome]


class Prompts:
    """The model, with the prompts that it receives."""

    def __init__(self, model: EmbeddedModel) -> None:
        self._model = model
        self.texts: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in ("next_tokens", "sample", "score"):
            return found

        def listening(prompt: Any, *arguments: Any, **options: Any) -> Any:
            self.texts.add(prompt.text)
            return found(prompt, *arguments, **options)

        return listening


def prompted(domain: Domain, model: LanguageModel) -> Options:
    return Options.resolve(domain, model.name, adapter=NO_ADAPTER)


def parts(domain: Domain, model: LanguageModel, folder: Path, seconds: float = ENOUGH, **given: Any) -> Parts:
    options = Options.resolve(domain, model.name, **{"adapter": NO_ADAPTER, **given})
    return parts_of(domain, options, model, Budget(seconds), folder)


def score(
    domain: Domain, model: LanguageModel, found: Parts, configurations: list[Configuration], items: list[int]
) -> Outcomes:
    scorer = HeldOutScorer(domain, model, found, prompted(domain, model), WEIGHTS, Records(), Budget(ENOUGH))
    outcomes: Outcomes = {}
    scorer.score(configurations, items, lambda each, item, outcome: outcomes.update({(each, item): outcome}))
    return outcomes


def control(domain: Domain, model: LanguageModel) -> Configuration:
    return planned_space(domain, prompted(domain, model), {}).control


def test_an_utterance_is_never_in_its_own_prompt_nor_is_a_repetition_of_it(
    tiny: EmbeddedModel, tmp_path: Path
) -> None:
    domain = make_switches(tmp_path / "switches", [*EXAMPLES, DUPLICATE])
    model: Any = Prompts(tiny)
    found = parts(domain, model, tmp_path)
    everything = replace(control(domain, tiny), examples=20)
    score(domain, model, found, [everything], [0, 12])
    for text in model.texts:
        own = EXAMPLES[0].utterance if text.count(EXAMPLES[0].utterance) else DUPLICATE.utterance
        assert text.count(own) == 1, "the query"
        assert text.lower().count(EXAMPLES[0].utterance) == 1
        assert text.count(EXAMPLES[5].utterance) == 1, "an example"
    assert len(model.texts) == 2


def test_the_word_alignment_is_estimated_without_the_utterance(tmp_path: Path) -> None:
    pairs = [(example.utterance, example.program) for example in (*EXAMPLES, DUPLICATE)]
    utterance, program = pairs[0]
    without = Alignment(pairs[1:-1])
    assert HeldOutAlignment(pairs).score(utterance, program) == without.score(utterance, program)
    assert Alignment(pairs).score(utterance, program) != without.score(utterance, program)


def test_every_weight_of_reranking_gives_what_a_parser_with_that_weight_returns(
    tiny: EmbeddedModel, tmp_path: Path
) -> None:
    domain = make_switches(tmp_path / "switches", REPHRASED)
    chosen = replace(control(domain, tiny), decoder="beam", width=16)
    items = [12, 14, 15, 19, 20]
    outcomes = score(domain, tiny, parts(domain, tiny, tmp_path), [chosen], items)
    for number, weight in enumerate(WEIGHTS):
        parser = Parser.from_domain(domain, tiny, decoder="beam", width=16, rerank=weight)
        for item in items:
            example = REPHRASED[item]
            right = parser.parse(example.utterance, without=[example]).program == example.program
            assert outcomes[chosen, item].correct[number] == right
    counts = [sum(outcome.correct[number] for outcome in outcomes.values()) for number in range(3)]
    assert counts[0] < counts[2], "the weight matters here"


def test_a_grammar_is_induced_without_the_examples_that_it_must_derive(
    tiny: EmbeddedModel, tmp_path: Path
) -> None:
    """The radio is in one program only: no grammar of the other examples derives it."""
    settings = SETTINGS.replace('fold = ["ROOM"]', "") + '[constraint]\nkind = "induced"\nmerge = "strict"\n'
    examples = [example for example in EXAMPLES if "radio" not in example.program]
    unseen = Example("radio on in the attic", "(on radio attic)")
    rows = [{"utterance": e.utterance, "program": e.program} for e in [*examples, *examples[:4], unseen]]
    for number, row in enumerate(rows):
        row["utterance"] += f" {number}"
    domain = load_domain(write_domain(tmp_path / "induced", settings, rows))
    found = parts(domain, tiny, tmp_path)
    assert found.method == "10 parts, each without its examples in prompt and grammar"
    assert sorted(item.utterance for _, item in found.items) == sorted(e.utterance for e in domain.examples)
    number, item = next((n, each) for n, each in found.items if each.program == unseen.program)
    assert item not in found.parts[number].domain.examples
    assert not any("radio" in text for text in map(repr, [found.parts[number].domain.grammar]))
    assert "radio" in repr(domain.grammar)
    space = planned_space(domain, prompted(domain, tiny), {})
    assert {each.merge for each in space.configurations} >= {"strict", "typed", "loose"}


@pytest.mark.parametrize(("count", "parsed"), [(60, slice(10, 60)), (59, slice(0, 59))])
def test_examples_beyond_the_pool_are_parsed_if_there_are_enough(
    count: int, parsed: slice, tiny: EmbeddedModel, tmp_path: Path
) -> None:
    examples = [Example(f"{number} {e.utterance}", e.program) for number, e in enumerate((*REPHRASED,) * 3)]
    domain = load_domain(make_switches(tmp_path / "switches", examples[:count]).folder, pool=10)
    found = parts(domain, tiny, tmp_path)
    assert [item for _, item in found.items] == examples[parsed]
    assert list(found.parts[0].domain.examples) == examples[:10]


def test_examples_can_be_left_out_in_parts(tiny: EmbeddedModel, tmp_path: Path) -> None:
    domain = make_switches(tmp_path / "switches")
    found = parts_of(domain, prompted(domain, tiny), tiny, Budget(ENOUGH), tmp_path, folds=3)
    assert [len(part.items) for part in found.parts] == [4, 4, 4]
    assert all(not set(part.items) & set(part.domain.examples) for part in found.parts)


def test_a_tuned_model_parses_parts_that_its_adapters_have_not_learned(
    tiny: EmbeddedModel, tmp_path: Path
) -> None:
    need_torch()
    from fewparse.tune.config import TuneConfig
    from fewparse.tune.tuning import Tuning

    domain = make_switches(tmp_path / "switches", [*REPHRASED, DUPLICATE])
    config = TuneConfig(rank=2, epochs=1, held_out=0.0, learning_rate=0.02)
    adapter = Tuning(domain, "program", tiny, config, tmp_path / "adapter.gguf").run()
    with pytest.raises(OutOfTime):
        parts(domain, tiny, tmp_path / "folds", seconds=0.0, adapter=adapter.path)
    found = parts(domain, tiny, tmp_path / "folds", adapter=adapter.path)
    assert len(found.parts) == 4
    utterances = {item.utterance for _, item in found.items}
    repeated = {EXAMPLES[0].utterance, DUPLICATE.utterance}
    assert {e.utterance for e in domain.examples} - repeated <= utterances
    for part in found.parts:
        made = None if part.adapter is None else part.adapter.provenance
        assert made is not None
        assert made.data_sha256 == part.domain.data_sha256("program") != domain.data_sha256("program")
        learned = {example.utterance.lower() for example in part.domain.examples}
        assert not learned & {item.utterance.lower() for item in part.items}
    fewer = make_switches(tmp_path / "fewer", REPHRASED)
    with pytest.raises(UsageError, match="was tuned on other examples than the domain has now"):
        parts(fewer, tiny, tmp_path / "folds", adapter=adapter.path)
    made_before = {part.adapter.sha256 for part in found.parts if part.adapter}
    again = parts(domain, tiny, tmp_path / "folds", seconds=0.0, adapter=adapter.path)
    assert {part.adapter.sha256 for part in again.parts if part.adapter} == made_before, "stored"


def test_an_adapter_of_unknown_origin_is_refused(tiny: EmbeddedModel, tmp_path: Path) -> None:
    domain = make_switches(tmp_path / "switches")
    path = write_adapter(tmp_path / "adapter.gguf")
    assert read_adapter(path).provenance is None
    with pytest.raises(UsageError, match="was not tuned by fewparse: it may have learned the examples"):
        parts(domain, tiny, tmp_path, adapter=path)


def test_too_few_examples_are_an_error(tiny: EmbeddedModel, tmp_path: Path) -> None:
    domain = make_switches(tmp_path / "switches", EXAMPLES[:9])
    with pytest.raises(UsageError, match="has 9 examples, too few to choose settings on"):
        planned_space(domain, prompted(domain, tiny), {})


def test_settings_that_are_given_are_fixed_and_impossible_ones_are_named(
    tiny: EmbeddedModel, tmp_path: Path
) -> None:
    domain = make_switches(tmp_path / "switches")
    options = Options.resolve(domain, tiny.name, adapter=NO_ADAPTER, examples=5, decoder="beam")
    space = space_of(domain, options, {"examples": 5, "decoder": "beam"}, 11)
    assert {each.examples for each in space.configurations} == {5}
    assert {(each.decoder, each.width) for each in space.configurations} == {
        ("beam", 1),
        ("beam", 5),
        ("beam", 10),
    }
    assert "target canonical: the domain switches lacks canonical utterances" in space.left
    assert {"examples: given, 5", "decoder: given, beam"} <= set(space.left)
    assert {each.retriever for each in space.configurations} == {"all", "embedding", "bm25"}
