"""The calendar's executor returns JSON or raises `ProgramError` for every text, and has no side effects."""

import json
import random

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fewparse.domains.calendar.executor import ProgramError, execute
from fewparse.domains.calendar.world import load_world
from fewparse.domains.load import load_domain
from fewparse.vocabulary import BYTES

CALENDAR = load_domain("calendar")
FILE = CALENDAR.folder / "world.json"
PROGRAMS = [e.program for e in (*CALENDAR.examples, *CALENDAR.test_examples)]
TOKENS = sorted({piece for program in PROGRAMS for piece in program.replace("(", "( ").replace(")", " )").split()})
LANGUAGE = CALENDAR.constraint(BYTES, "program", "the 1:1 with Anna, and a Budget Review?")
SEMANTIC_ERRORS = (
    *("no such meeting", "no such room", "takes only", "has no manager", "ends before it starts"),
    *("is online and has no room", "nested more than"),
)
INITIAL_WORLD = (repr(load_world()), FILE.read_bytes())


def outcome(program: str) -> str:
    """Return `answer` or the message of the `ProgramError`; any other exception fails the test."""
    try:
        answer = execute(program)
    except ProgramError as error:
        return str(error)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    return "answer"


def world_is_unchanged() -> bool:
    return (repr(load_world()), FILE.read_bytes()) == INITIAL_WORLD


@given(st.text() | st.text(alphabet='()" \nabcme:-019', max_size=60))
@example("(" * 10_000)
@example("(list " * 30)
@example('(message me "' + "x" * 3_990 + '")')
def test_any_text_has_an_answer_or_an_error(program: str) -> None:
    outcome(program)
    assert world_is_unchanged()


@given(st.lists(st.sampled_from(TOKENS), max_size=25))
def test_any_sequence_of_tokens_has_an_answer_or_an_error(pieces: list[str]) -> None:
    outcome(" ".join(pieces))
    assert world_is_unchanged()


@settings(max_examples=300)
@given(
    st.sampled_from(PROGRAMS), st.integers(0, 200), st.integers(0, 20), st.sampled_from(["", *TOKENS, "(", ")"])
)
def test_an_edited_program_has_an_answer_or_an_error(program: str, at: int, deleted: int, inserted: str) -> None:
    outcome(program[:at] + inserted + program[at + deleted :])
    assert world_is_unchanged()


def random_sentence(seed: int) -> str | None:
    """Sample a sentence of the grammar byte by byte; None if it does not end."""
    rng = random.Random(seed)
    state, text = LANGUAGE.start(), b""
    while not state.must_end and len(text) < 1_000:
        choices = bytes(state.mask().nonzero()[0].tolist())
        close = b")" in choices and (len(text) > 100 or rng.random() < 0.3)
        byte = b")" if close else bytes([rng.choice(choices)])
        following = state.advance(byte)
        assert following is not None
        state, text = following, text + byte
    return text.decode() if state.may_end else None


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_a_sentence_of_the_grammar_has_an_answer_or_a_semantic_error(seed: int) -> None:
    sentence = random_sentence(seed)
    assume(sentence is not None)
    result = outcome(sentence or "")
    assert result == "answer" or any(reason in result for reason in SEMANTIC_ERRORS), (sentence, result)
    assert world_is_unchanged()
