"""Whatever it is given, the calendar's executor answers with data or a `ProgramError`, and changes nothing."""

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
PIECES = sorted({piece for program in PROGRAMS for piece in program.replace("(", "( ").replace(")", " )").split()})
LANGUAGE = CALENDAR.constraint(BYTES, "program", "the 1:1 with Anna, and a Budget Review?")
OF_MEANING = (
    *("no such meeting", "no such room", "takes only", "has no manager", "ends before it starts"),
    *("is online and has no room", "nested more than"),
)
BEFORE = (repr(load_world()), FILE.read_bytes())


def outcome(program: str) -> str:
    """`answer` or the message of the error; anything else that happens fails the test."""
    try:
        answer = execute(program)
    except ProgramError as error:
        return str(error)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    return "answer"


def the_world_is_as_it_was() -> bool:
    return (repr(load_world()), FILE.read_bytes()) == BEFORE


@given(st.text() | st.text(alphabet='()" \nabcme:-019', max_size=60))
@example("(" * 10_000)
@example("(list " * 30)
@example('(message me "' + "x" * 3_990 + '")')
def test_any_text_is_answered_or_refused(program: str) -> None:
    outcome(program)
    assert the_world_is_as_it_was()


@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_any_heap_of_the_language_s_words_is_answered_or_refused(pieces: list[str]) -> None:
    outcome(" ".join(pieces))
    assert the_world_is_as_it_was()


@settings(max_examples=300)
@given(
    st.sampled_from(PROGRAMS), st.integers(0, 200), st.integers(0, 20), st.sampled_from(["", *PIECES, "(", ")"])
)
def test_a_program_with_a_piece_cut_out_or_put_in_is_answered_or_refused(
    program: str, at: int, cut: int, put: str
) -> None:
    outcome(program[:at] + put + program[at + cut :])
    assert the_world_is_as_it_was()


def wander(seed: int) -> str | None:
    """A random sentence of the grammar, byte by byte what may follow; None if it would not end."""
    chance = random.Random(seed)
    state, said = LANGUAGE.start(), b""
    while not state.must_end and len(said) < 1_000:
        choices = bytes(state.mask().nonzero()[0].tolist())
        close = b")" in choices and (len(said) > 100 or chance.random() < 0.3)
        byte = b")" if close else bytes([chance.choice(choices)])
        following = state.advance(byte)
        assert following is not None
        state, said = following, said + byte
    return said.decode() if state.may_end else None


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_every_sentence_of_the_grammar_is_answered_or_refused_for_its_meaning(seed: int) -> None:
    sentence = wander(seed)
    assume(sentence is not None)
    result = outcome(sentence or "")
    assert result == "answer" or any(reason in result for reason in OF_MEANING), (sentence, result)
    assert the_world_is_as_it_was()
