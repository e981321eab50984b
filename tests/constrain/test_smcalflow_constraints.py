"""The constraints of SMCalFlow accept the gold outputs of both targets, with text copied from the utterance."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from fewparse.constrain.state import Constraint
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain, with_overrides
from fewparse.example import Target
from fewparse.lm.embedded import EmbeddedModel
from fewparse.vocabulary import BYTES, Vocabulary
from support.campaign import sizes
from support.constraint_cases import spans

TARGETS: tuple[Target, ...] = ("program", "canonical")
FREE_TEXT = re.compile(r'#\((?:String|PersonName|LocationKeyphrase|RespondComment) ("(?:[^"\\]|\\.)*")\)')


class Gold(NamedTuple):
    """A turn of the test set: the utterance, and its gold outputs for both targets."""

    utterance: str
    program: str
    canonical: str

    def output(self, target: Target) -> bytes:
        return (self.program if target == "program" else self.canonical).encode()

    @property
    def is_copied(self) -> bool:
        """Whether each free text of the program is a span of the utterance, by brute force."""
        texts = [json.loads(text) for text in FREE_TEXT.findall(self.program)]
        return set(filter(None, texts)) <= spans(self.utterance, lambda _: True)


@pytest.fixture(scope="session")
def free(smcalflow: Domain) -> Domain:
    """The domain without copying, in which all turns share a constraint."""
    return with_overrides(smcalflow, None, None, copy=False)


@pytest.fixture(scope="session")
def gold(smcalflow: Domain) -> list[Gold]:
    translator = smcalflow.translator
    assert translator is not None
    outputs = [(e.utterance, e.program, translator.to_utterance(e.program).best) for e in smcalflow.test_examples]
    assert len(outputs) == 200
    return [
        Gold(utterance, program, canonical) for utterance, program, canonical in outputs if canonical is not None
    ]


def longest_tokens(text: bytes, vocabulary: Vocabulary) -> list[bytes]:
    """Split a text into the longest tokens, from left to right."""
    found, at = [], 0
    while at < len(text):
        end = next(end for end in range(min(len(text), at + 40), at, -1) if text[at:end] in vocabulary.ids)
        found.append(text[at:end])
        at = end
    return found


def assert_is_allowed(tokens: Sequence[bytes], constraint: Constraint) -> None:
    state = constraint.start()
    for i, token in enumerate(tokens):
        assert state.mask()[constraint.vocabulary.ids[token]], (tokens[:i], token)
        following = state.advance(token)
        assert following is not None, (tokens[:i], token)
        state = following
    assert state.may_end, tokens


@pytest.mark.parametrize("target", TARGETS)
def test_every_gold_output_is_allowed_in_longest_tokens(
    target: Target, free: Domain, gold: list[Gold], model_vocabulary: Vocabulary
) -> None:
    constraint = free.constraint(model_vocabulary, target)
    assert len(gold) == 200
    for turn in gold:
        assert_is_allowed(longest_tokens(turn.output(target), model_vocabulary), constraint)


@pytest.mark.parametrize("target", TARGETS)
def test_every_gold_output_is_allowed_in_the_tokens_of_the_tokenizer(
    target: Target, free: Domain, gold: list[Gold], model: EmbeddedModel
) -> None:
    constraint = free.constraint(model.vocabulary, target)
    for turn in gold:
        tokens = [token.bytes for token in model.tokenize(turn.output(target).decode())]
        assert b"".join(tokens) == turn.output(target)
        assert_is_allowed(tokens, constraint)


@pytest.mark.parametrize("copy", [False, True], ids=["free text", "copied text"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_mask_has_exactly_the_tokens_that_can_advance(
    target: Target, copy: bool, smcalflow: Domain, free: Domain, gold: list[Gold], model_vocabulary: Vocabulary
) -> None:
    rng = random.Random(5)
    sizes = set()
    for turn in rng.sample([turn for turn in gold if turn.is_copied and FREE_TEXT.search(turn.program)], 2):
        state = (smcalflow if copy else free).constraint(model_vocabulary, target, turn.utterance).start()
        output = turn.output(target)
        within_text = output.index(b'"') + rng.randint(1, 2)
        between_words = [match.end() for match in re.finditer(rb"[ (](?=\w)", output)]
        for place in (within_text, rng.choice(between_words)):
            here = state.advance(output[:place])
            assert here is not None
            expected = [bool(token) and here.advance(token) is not None for token in model_vocabulary.tokens]
            wrong = [model_vocabulary.tokens[i] for i in np.flatnonzero(here.mask() != np.array(expected))]
            assert wrong == [], output[:place]
            sizes.add(sum(expected))
    assert any(1 < size < 1_000 for size in sizes)
    assert (max(sizes) > 10_000) != copy


@sizes("step", default=5, campaign=1)
@pytest.mark.parametrize("target", TARGETS)
def test_with_copying_a_gold_output_is_allowed_iff_its_text_is_in_the_utterance(
    target: Target, step: int, smcalflow: Domain, gold: list[Gold]
) -> None:
    not_copied = [turn for turn in gold if not turn.is_copied]
    assert 0 < len(not_copied) <= 5
    for turn in (*not_copied, *gold[::step]):
        constraint = smcalflow.constraint(BYTES, target, turn.utterance)
        assert constraint.accepts(turn.output(target)) == turn.is_copied, turn


def test_the_induced_grammar_accepts_all_examples_and_most_test_programs(
    smcalflow: Domain, gold: list[Gold]
) -> None:
    induced = with_overrides(smcalflow, "induced", None, copy=False).constraint(BYTES, "program")
    assert len(smcalflow.examples) == 300
    assert all(induced.accepts(example.program.encode()) for example in smcalflow.examples)
    others = sum(induced.accepts(turn.output("program")) for turn in gold)
    assert others >= 170, f"{others} of 200"


def test_an_induced_grammar_derives_programs_and_copies_their_texts(smcalflow_data: Path) -> None:
    induced = load_domain("smcalflow", smcalflow_data, constraint="induced")
    assert induced.table.target == "program"
    constraint = induced.constraint(BYTES, "program", "find the staff meeting")
    for title, is_copied in (("staff meeting", True), ("stuff meeting", False)):
        event = f'(Constraint[Event] :subject (?~= #(String "{title}")))'
        program = f"(Yield :output (FindEventWrapperWithDefaults :constraint {event}))"
        assert constraint.accepts(program.encode()) is is_copied
