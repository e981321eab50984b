"""The executor gives every gold program of Overnight the denotation that SEMPRE gives it."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from fewparse.datasets.overnight.executor import denote
from fewparse.datasets.overnight.world import WORLDS, load_world
from support.data import OVERNIGHT
from support.overnight_oracle import FuelExhausted, Oracle

SHARED = OVERNIGHT
WITH_DENOTATIONS = [name for name in WORLDS if name not in ("recipes", "socialnetwork")]
MUTANTS = 100

pytestmark = pytest.mark.skipif(
    not SHARED.exists(), reason="the Overnight dataset was not found: set FEWPARSE_DATA"
)


def gold_programs(name: str) -> list[str]:
    programs: dict[str, None] = {}
    for part in ("train", "test"):
        with gzip.open(SHARED / f"{name}.{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
            programs.update((json.loads(line)["program"], None) for line in lines)
    return list(programs)


@pytest.mark.parametrize("name", WITH_DENOTATIONS)
def test_every_gold_program_has_its_published_denotation(name: str) -> None:
    with gzip.open(SHARED / f"{name}.denotations.json.gz", "rt", encoding="utf-8") as file:
        expected = json.load(file)
    assert set(expected) == set(gold_programs(name))
    assert {program: denote(program, load_world(name)).text for program in expected} == expected


@pytest.mark.parametrize(
    ("name", "programs", "distinct", "empty"), [("recipes", 124, 60, 15), ("socialnetwork", 624, 224, 71)]
)
def test_every_gold_program_of_the_other_domains_has_a_denotation(
    name: str, programs: int, distinct: int, empty: int
) -> None:
    denotations = [denote(program, load_world(name)) for program in gold_programs(name)]
    assert not [denotation.error for denotation in denotations if denotation.error]
    texts = [denotation.text for denotation in denotations]
    assert (len(texts), len(set(texts)), texts.count("(list)")) == (programs, distinct, empty)


def mutant(program: str, pieces: list[str], random: Random) -> str:
    """Replace one to three subexpressions of a program, mostly by similar ones; others are dropped or doubled."""
    for _ in range(random.randint(1, 3)):
        old = random.choice([part for part in subexpressions(program) if part != program])
        similar = [piece for piece in pieces if similarity_key(piece) == similarity_key(old)] or [old]
        wild = [random.choice(pieces), "", f"{old} {old}", f"(call singleton {old})"]
        program = program.replace(old, random.choice(similar if random.random() < 0.8 else wild), 1)
    return program


def similarity_key(piece: str) -> str:
    """Return the key of similar expressions: the head of a form, the type of an entity, or a whole word."""
    if piece.startswith("("):
        return piece.split()[0]
    return piece.rpartition(".")[0] or piece


def subexpressions(program: str) -> list[str]:
    found, opened = program.replace("(", " ").replace(")", " ").split(), []
    for at, char in enumerate(program):
        if char == "(":
            opened.append(at)
        elif char == ")" and opened:
            found.append(program[opened.pop() : at + 1])
    return found


@pytest.mark.parametrize("name", WORLDS)
def test_mutants_of_gold_programs_have_the_denotation_of_the_oracle(name: str) -> None:
    random = Random(name)
    shipped = Path(__file__).parents[2] / "src/fewparse/datasets/overnight/worlds" / f"{name}.json"
    oracle = Oracle(json.loads(shipped.read_text(encoding="utf-8")))
    gold = gold_programs(name)
    pieces = sorted({piece for program in gold for piece in subexpressions(program) if len(piece) < 80})
    fine = 0
    for program in (mutant(random.choice(gold), pieces, random) for _ in range(MUTANTS)):
        try:
            expected = oracle.denote(program)
        except FuelExhausted:
            continue
        assert denote(program, load_world(name)).text == expected, program
        fine += expected != "error"
    assert fine
