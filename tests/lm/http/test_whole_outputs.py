"""Models without log-probabilities: whole outputs are sampled, cut or constrained, and ranked by agreement."""

from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse import Domain, Options, Parser, load_domain
from fewparse.errors import UsageError
from fewparse.events import Sampled
from fewparse.lm.http.capabilities import Capabilities
from fewparse.lm.http.capability_table import lost
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.http.request_fields import RequestFields
from fewparse.lm.model import Sampling
from fewparse.lm.usage import Usage
from fewparse.prompt import bundled_template
from fewparse.vocabulary import BYTES
from support.lamp_domain import make_lamps
from support.letters_domain import make_letters
from support.remote_models import capabilities_of, request_bodies, toy_model
from support.server_behaviours import ANTHROPIC, COMPLIANT, OPENAI_REASONING, SGLANG, VLLM, Behaviour
from support.toy_grammar import GrammarMask
from support.toy_model import ANYTHING

pytestmark = pytest.mark.filterwarnings("ignore:.*reports no log-probabilities")
SILENT = Behaviour(logprob_format="none")
LLAMA_CPP_GRAMMAR = Behaviour(logprob_format="none", grammar="gbnf")
REASONING_FIELDS = RequestFields("max_completion_tokens", ("temperature", "stop"), 4096, "minimal")


def silent(behaviour: Behaviour) -> Behaviour:
    return replace(behaviour, logprob_format="none")


SERVERS: dict[str, tuple[Behaviour, bool, dict[str, Any]]] = {
    "logprobs left out": (SILENT, False, {"max_n": 5, "seed": True, "grammar": None}),
    "logprobs left out of a chat": (SILENT, True, {"max_n": 5, "seed": True, "grammar": None}),
    "llama.cpp's grammar": (LLAMA_CPP_GRAMMAR, True, {"grammar": "gbnf"}),
    "vLLM": (silent(VLLM), True, {"grammar": "structured_outputs", "context_length": 4096}),
    "SGLang": (silent(SGLANG), False, {"grammar": "ebnf"}),
    "Anthropic": (ANTHROPIC, True, {"max_n": 1, "seed": False, "fields": RequestFields(omitted=("stop",))}),
    "OpenAI, reasoning": (OPENAI_REASONING, True, {"grammar": "custom_tool", "fields": REASONING_FIELDS}),
    "reasoning can be switched off": (
        replace(OPENAI_REASONING, efforts=("none", "low")),
        True,
        {"fields": replace(REASONING_FIELDS, extra_tokens=0, effort="none")},
    ),
    "no alternatives": (Behaviour(capped_logprobs=0), True, {"grammar": None}),
}
every_server = pytest.mark.parametrize(("behaviour", "chat", "expected"), SERVERS.values(), ids=SERVERS.keys())


@every_server
def test_the_probe_finds_what_such_a_server_accepts(
    behaviour: Behaviour, chat: bool, expected: dict[str, Any]
) -> None:
    found = capabilities_of(behaviour, chat)
    assert found.logprobs_format is None
    assert {name: getattr(found, name) for name in expected} == expected
    assert "no log-probabilities" in lost(found)
    assert ("constrained by the server" in lost(found)) == (found.grammar is not None)


@every_server
def test_the_server_accepts_every_request_of_a_parser_and_the_programs_are_well_formed(
    behaviour: Behaviour, chat: bool, expected: dict[str, Any], tmp_path: Path
) -> None:
    domain = make_letters(tmp_path)
    with toy_model(behaviour, chat) as (model, server):
        with pytest.warns(UserWarning, match="`fewparse models probe` says what else is lost"):
            parser = Parser.from_domain(domain, model, width=4, temperature=1.0, max_tokens=60)
        parse = parser.parse("two")
    assert parser.options.search.decoder == "sampling"
    assert parser.options.server_grammar == (capabilities_of(behaviour, chat).grammar is not None)
    assert "reports no log-probabilities: the decoder is `sampling` instead of `greedy`" in parser.notes[0]
    constraint = domain.constraint(BYTES, "program")
    assert parse.program is not None
    assert all(constraint.accepts(candidate.text.encode()) for candidate in parse.candidates)
    assert all(candidate.logprob is candidate.least_logprob is None for candidate in parse.candidates)
    outcomes = [event.outcome for event in parse.trace if isinstance(event, Sampled)]
    assert len(outcomes) == 4
    assert not parser.options.server_grammar or set(outcomes) <= {"finished", "limit"}
    assert all("logprobs" not in body and "top_logprobs" not in body for body in request_bodies(server))


def test_the_programs_are_ranked_by_the_number_of_samples_that_agree(tmp_path: Path) -> None:
    with toy_model(LLAMA_CPP_GRAMMAR, chat=True) as (model, _):
        parser = Parser.from_domain(make_letters(tmp_path), model, width=40, temperature=1.0, max_tokens=60)
        parse = parser.parse("two")
    finished = Counter(
        b"".join(event.pieces).decode()
        for event in parse.trace
        if isinstance(event, Sampled) and event.outcome == "finished"
    )
    shares = {c.text: 2.718281828**c.score for c in parse.candidates}
    assert len(shares) > 2
    assert {text: round(40 * share) for text, share in shares.items()} == finished
    assert parse.output == finished.most_common(1)[0][0]


def test_features_of_log_probabilities_are_absent(tmp_path: Path) -> None:
    domain = make_letters(tmp_path)
    given: dict[str, Any] = {"width": 4, "temperature": 1.0, "max_tokens": 60}
    with toy_model(SILENT, chat=True) as (silent_model, _), toy_model(COMPLIANT, chat=True) as (scored_model, _):
        features = [
            Parser(domain, model, Options.resolve(domain, **given), features=True).parse("two").features
            for model in (silent_model, scored_model)
        ]
    assert features[0] is not None
    assert features[1] is not None
    assert set(features[1]) - set(features[0]) == {"logprob", "least_token", "score"}


def test_a_sample_is_cut_where_the_guide_rejects_it_and_at_the_stop() -> None:
    with toy_model(SILENT) as (model, _):
        sampling = Sampling(n=8, temperature=1.0, max_tokens=10)
        (samples,) = model.sample(ANYTHING, [()], sampling, Usage())
        guides = [TextGuide("".join(c.tokens[0].bytes.decode() for c in samples[:1])[:2] + "!")]
        (guided,) = model.sample(ANYTHING, [()], sampling, Usage(), guides)
    assert all(len(sample.tokens) <= 1 for sample in samples)
    assert not any(b"\n" in sample.tokens[0].bytes for sample in samples if sample.tokens)
    assert [b"".join(t.bytes for t in sample.tokens) for sample in guided] == [
        b"".join(t.bytes for t in sample.tokens) for sample in samples
    ]
    assert len(guided[0].tokens) == 2
    assert len(guided[0].tokens[0].bytes) == 2


class TextGuide:
    """Accepts the prefixes of a text."""

    def __init__(self, rest: str) -> None:
        self._rest = rest.encode()

    def advance(self, piece: bytes) -> "TextGuide | None":
        return TextGuide(self._rest[len(piece) :].decode()) if self._rest.startswith(piece) else None


def test_other_decoders_are_not_used_directly_nor_texts_scored() -> None:
    with toy_model(SILENT) as (model, _):
        with pytest.raises(UsageError, match="reports no log-probabilities"):
            model.next_tokens(ANYTHING, [()], 3, b"\n", Usage())
        with pytest.raises(UsageError, match="reports no log-probabilities") as caught:
            model.score(ANYTHING, [()], [model.tokenize("ab")], Usage())
    assert "another retriever" in str(caught.value.hint)


def test_the_grammar_of_the_server_can_be_switched_off(tmp_path: Path) -> None:
    with toy_model(LLAMA_CPP_GRAMMAR, chat=True) as (model, server):
        parser = Parser.from_domain(make_letters(tmp_path), model, server_grammar=False)
        assert parser.parse("two").program is not None
        assert not any("grammar" in body for body in request_bodies(server))


def test_a_domain_whose_constraint_is_no_grammar_is_served_without_one(tmp_path: Path) -> None:
    domain = make_letters(tmp_path)
    free = domain.table.constraint.model_copy(update={"kind": "none"})
    with toy_model(LLAMA_CPP_GRAMMAR, chat=True) as (model, _):
        table = domain.table.model_copy(update={"constraint": free})
        parser = Parser.from_domain(replace(domain, table=table), model)
        assert parser.options.server_grammar is False
        assert parser.parse("two").output


def test_the_tokens_of_reasoning_are_allowed_and_counted(tmp_path: Path) -> None:
    with toy_model(OPENAI_REASONING, chat=True) as (model, server):
        parser = Parser.from_domain(make_letters(tmp_path), model, width=2, max_tokens=30)
        usage = parser.parse("two").usage
    (body,) = request_bodies(server)
    assert body["max_completion_tokens"] == 30 + 4096
    assert body["reasoning_effort"] == "minimal"
    assert body["n"] == 2
    assert usage.completion_tokens > 2 * OPENAI_REASONING.reasoning_tokens


def texts_of(domain: Domain, target: Any) -> list[str]:
    template = bundled_template("canonical")
    return [template.lead + example.output(target) for example in domain.for_target(target).examples]


@pytest.mark.parametrize("target", ["program", "canonical"])
@pytest.mark.parametrize("make", [make_lamps, lambda _: load_domain("calendar")], ids=["lamps", "calendar"])
def test_llguidance_reads_the_grammar_for_a_custom_tool(make: Any, target: Any, tmp_path: Path) -> None:
    domain = make(tmp_path)
    template = bundled_template("canonical")
    for example, text in list(zip(domain.for_target(target).examples, texts_of(domain, target), strict=True))[:20]:
        grammar = GrammarMask(domain.server_grammar(target, example.utterance, template, "lark"))
        assert grammar.accepts(text)
        assert not grammar.accepts(text + "(")
        assert not grammar.accepts(text[:-2])


def test_the_real_model_without_log_probabilities_answers_under_its_servers_grammar(
    llama_server: str, isolated_cache: Path
) -> None:
    scored = open_remote("openai-chat", "", RemoteSettings(base_url=llama_server))
    with closing(scored):
        assert isinstance(scored, ChatModel)
        model = ChatModel(
            scored._batcher.client,
            scored._model,
            without_logprobs(scored._capabilities),
            scored._batcher._budget,
        )
        for server_grammar in (None, False):
            parser = Parser.from_domain(
                "calendar",
                model,
                target="program",
                width=3,
                examples=4,
                max_tokens=40,
                server_grammar=server_grammar,
            )
            parse = parser.parse("when is my next meeting with Jane")
            constraint = parser.domain.constraint(BYTES, "program", parse.utterance)
            assert constraint.accepts((parse.program or "").encode())
            assert parse.usage.rounds == 1


def without_logprobs(capabilities: Capabilities) -> Capabilities:
    return replace(capabilities, logprobs_format=None, continuation=None)
