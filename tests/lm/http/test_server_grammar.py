"""--server-grammar: the server constrains samples to the domain's grammar; scores are unmasked."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse import Domain, load_domain
from fewparse.constrain.trie import Trie
from fewparse.errors import UsageError
from fewparse.events import Event, Sampled
from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.model import Sampling
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Part, Prompt
from fewparse.vocabulary import BYTES
from support.lamp_domain import make_lamps
from support.remote_models import toy_remote
from support.server_behaviours import COMPLIANT, Behaviour
from support.toy_model import ANYTHING, ToyModel

NOISE = 1.0
COPYING = 'rename tomorrow\'s "Größe & budget" meeting to lunch with Zoë'


def calendar(_folder: Path) -> Domain:
    return load_domain("calendar")


@pytest.mark.parametrize(
    ("make", "target", "utterance"),
    [
        (calendar, "program", "when is my next meeting"),
        (calendar, "canonical", "when is my next meeting"),
        (calendar, "program", COPYING),
        (calendar, "canonical", COPYING),
        (make_lamps, "canonical", "the radio should be on"),
        (make_lamps, "program", "the radio should be on"),
    ],
)
def test_llama_cpp_samples_follow_the_grammar_with_unmasked_scores(
    make: Callable[[Path], Domain], target: Any, utterance: str, served_model: RemoteModel, tmp_path: Path
) -> None:
    parser = Parser.from_domain(
        make(tmp_path),
        served_model,
        target=target,
        server_grammar=True,
        width=3,
        examples=3,
        rerank=0.0,
        max_tokens=60,
    )
    sampled: list[Event] = []
    parse = parser.parse(utterance, emit=sampled.append)
    outcomes = [event.outcome for event in sampled if isinstance(event, Sampled) and not event.prefix]
    assert outcomes
    assert set(outcomes) <= {"finished", "limit"}
    assert parse.program is not None
    template = parser.template
    constraint = parser.domain.constraint(served_model.vocabulary or BYTES, target, utterance, template)
    assert all(constraint.accepts((template.lead + candidate.text).encode()) for candidate in parse.candidates)
    if "limit" not in outcomes:
        assert parse.usage.requests == 1

    grammar = parser.domain.server_grammar(target, utterance, template)
    sampling = Sampling(n=3, temperature=0.5, max_tokens=60, seed=1, alternatives=20, grammar=grammar)
    samples = served_model.sample(parse.prompt, [()], sampling, Usage())[0]
    best = max(samples, key=lambda sample: sum(sample.logprobs))
    exact = served_model.score(parse.prompt, [()], [best.tokens], Usage())[0]
    assert math.fsum(best.logprobs) == pytest.approx(math.fsum(exact), abs=NOISE)
    if best.ended:
        end = served_model.next_tokens(parse.prompt, [best.tokens], 1, b"\n", Usage())[0].end_logprob
        assert best.positions[-1].end_logprob == pytest.approx(end, abs=NOISE)


@pytest.mark.parametrize("kind", ["gbnf", "structured_outputs", "guided_grammar"])
def test_a_grammar_is_sent_in_the_servers_field_and_only_without_prefix(kind: Any) -> None:
    grammar = 'root ::= "ab"'
    sampling = Sampling(n=2, temperature=1.0, max_tokens=6, alternatives=300, grammar=grammar)
    with toy_remote(CompletionsModel, Behaviour(grammar=kind)) as (model, server):
        assert model.supports_grammar
        (whole,) = model.sample(ANYTHING, [()], sampling, Usage())
        model.sample(ANYTHING, [whole[0].tokens[:1]], sampling, Usage())
    fields = {"gbnf": "grammar", "structured_outputs": "structured_outputs", "guided_grammar": "guided_grammar"}
    sent, unsent = (request.body for request in server.requests)
    assert sent[fields[kind]] == ({"grammar": grammar} if kind == "structured_outputs" else grammar)
    assert not set(fields.values()) & set(unsent)
    toy = ToyModel()
    for sample in whole:
        assert [token.bytes for token in sample.tokens] == [b"a", b"b"]
        assert sample.ended
        expected = toy.score(ANYTHING, [()], [toy.tokenize("ab")], Usage())[0]
        assert sample.logprobs == pytest.approx(expected)
        end = toy.next_tokens(ANYTHING, [toy.tokenize("ab")], 1, b"\n", Usage())[0].end_logprob
        assert sample.positions[-1].end_logprob == pytest.approx(end)


def test_a_model_without_grammar_support_is_rejected_before_any_request(tmp_path: Path) -> None:
    with toy_remote(CompletionsModel, COMPLIANT) as (model, server):
        assert not model.supports_grammar
        with pytest.raises(UsageError) as caught:
            Parser.from_domain(make_lamps(tmp_path), model, server_grammar=True)
        assert server.requests == []
    assert "does not support grammars" in caught.value.message
    with pytest.raises(UsageError, match="does not support grammars"):
        Parser.from_domain(make_lamps(tmp_path), ToyModel(), server_grammar=True)


@pytest.mark.parametrize("other", [{"decoder": "beam"}, {"decoder": "greedy"}, {"constrained": False}])
def test_the_option_requires_the_constrained_speculative_decoder(other: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Parser.from_domain(make_lamps(tmp_path), ToyModel(), server_grammar=True, **other)
    assert "--decoder speculative" in str(caught.value.hint)


def test_a_domain_without_a_grammar_is_rejected(tmp_path: Path) -> None:
    lamps = make_lamps(tmp_path)
    free = replace(lamps, table=lamps.table.model_copy(update={"constraint": constraint_of_kind_none(lamps)}))
    with pytest.raises(UsageError, match="cannot be sent to a server"):
        free.server_grammar("program", "x")


def constraint_of_kind_none(domain: Domain) -> Any:
    return domain.table.constraint.model_copy(update={"kind": "none"})


@pytest.mark.parametrize("text", ["Größe und Höhe", "§§ 12"])
def test_if_no_likely_token_is_allowed_the_best_is_found_by_a_token_grammar(
    served_model: RemoteModel, text: str
) -> None:
    vocabulary = served_model.vocabulary
    assert vocabulary is not None
    prompt = Prompt((Part("Fruits: apple, pear,", False),))
    mask = Trie([text], vocabulary).start().mask()
    everything = served_model.next_tokens(prompt, [()], len(vocabulary), b"\n", Usage())[0]
    rank, expected = next((i, s) for i, s in enumerate(everything.best) if mask[s.token.id])
    assert rank > 100
    few = CompletionsModel(
        served_model._batcher.client,
        served_model._model,
        served_model._capabilities,
        Budget(BudgetLimits(), None),
        top_logprobs=100,
    )
    usage = Usage()
    found = few.next_tokens(prompt, [()], 5, b"\n", usage, [mask])[0]
    assert found.best[0].token == expected.token
    assert found.best[0].logprob == pytest.approx(expected.logprob, abs=NOISE)
    assert found.end_logprob == pytest.approx(everything.end_logprob, abs=NOISE)
    assert usage.requests == 2
