"""SMCalFlow under its constraint: every right output may be said, on either side, with text that the user said."""

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
    """A turn of the test set: what the user says, and what should be said for it on either side."""

    utterance: str
    program: str
    canonical: str

    def output(self, target: Target) -> bytes:
        return (self.program if target == "program" else self.canonical).encode()

    @property
    def is_copied(self) -> bool:
        """By brute force: whether each free text of the program stands in the utterance, word for word."""
        texts = [json.loads(text) for text in FREE_TEXT.findall(self.program)]
        return set(filter(None, texts)) <= spans(self.utterance, lambda _: True)


@pytest.fixture(scope="session")
def free(smcalflow: Domain) -> Domain:
    """The domain where text need not be copied, so that all turns share a constraint."""
    return with_overrides(smcalflow, None, None, copy=False)


@pytest.fixture(scope="session")
def gold(smcalflow: Domain) -> list[Gold]:
    translator = smcalflow.translator
    assert translator is not None
    spoken = [(e.utterance, e.program, translator.to_utterance(e.program).best) for e in smcalflow.test_examples]
    assert len(spoken) == 200
    return [Gold(utterance, program, said) for utterance, program, said in spoken if said is not None]


def longest_tokens(text: bytes, vocabulary: Vocabulary) -> list[bytes]:
    """A text as the longest tokens from the left."""
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
def test_every_right_output_is_allowed_by_its_longest_tokens(
    target: Target, free: Domain, gold: list[Gold], model_vocabulary: Vocabulary
) -> None:
    constraint = free.constraint(model_vocabulary, target)
    assert len(gold) == 200
    for turn in gold:
        assert_is_allowed(longest_tokens(turn.output(target), model_vocabulary), constraint)


@pytest.mark.parametrize("target", TARGETS)
def test_every_right_output_is_allowed_as_the_model_writes_it(
    target: Target, free: Domain, gold: list[Gold], model: EmbeddedModel
) -> None:
    constraint = free.constraint(model.vocabulary, target)
    for turn in gold:
        tokens = [token.bytes for token in model.tokenize(turn.output(target).decode())]
        assert b"".join(tokens) == turn.output(target)
        assert_is_allowed(tokens, constraint)


@pytest.mark.parametrize("copy", [False, True], ids=["free text", "copied text"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_mask_has_exactly_the_tokens_that_may_follow(
    target: Target, copy: bool, smcalflow: Domain, free: Domain, gold: list[Gold], model_vocabulary: Vocabulary
) -> None:
    rng = random.Random(5)
    sizes = set()
    for turn in rng.sample([turn for turn in gold if turn.is_copied and FREE_TEXT.search(turn.program)], 4):
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
def test_with_copying_a_right_output_is_allowed_iff_the_user_said_its_text(
    target: Target, step: int, smcalflow: Domain, gold: list[Gold]
) -> None:
    not_copied = [turn for turn in gold if not turn.is_copied]
    assert 0 < len(not_copied) <= 5
    for turn in (*not_copied, *gold[::step]):
        constraint = smcalflow.constraint(BYTES, target, turn.utterance)
        assert constraint.accepts(turn.output(target)) == turn.is_copied, turn


def test_what_is_induced_from_the_examples_allows_them_all_and_some_others(
    smcalflow: Domain, gold: list[Gold]
) -> None:
    induced = with_overrides(smcalflow, "induced", None, copy=False).constraint(BYTES, "program")
    assert len(smcalflow.examples) == 300
    assert all(induced.accepts(example.program.encode()) for example in smcalflow.examples)
    others = sum(induced.accepts(turn.output("program")) for turn in gold)
    assert others >= 170, f"{others} of 200"


def test_an_induced_grammar_is_one_of_programs_and_copies_its_texts(smcalflow_data: Path) -> None:
    induced = load_domain("smcalflow", smcalflow_data, constraint="induced")
    assert induced.table.target == "program"
    constraint = induced.constraint(BYTES, "program", "find the staff meeting")
    for title, is_said in (("staff meeting", True), ("stuff meeting", False)):
        event = f'(Constraint[Event] :subject (?~= #(String "{title}")))'
        program = f"(Yield :output (FindEventWrapperWithDefaults :constraint {event}))"
        assert constraint.accepts(program.encode()) is is_said
