"""Name swaps: the same in utterance and output, and only to examples that the grammar admits."""

import os
import re
import subprocess
import sys

import numpy as np

from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import ExecutionError
from fewparse.example import Example
from fewparse.tune.augment import NameSwap, augmenter_for

SCRIPT = """
import numpy as np
from fewparse.domains.load import load_domain
from fewparse.tune.augment import augmenter_for
domain, random = load_domain("calendar"), np.random.default_rng(0)
augmenter = augmenter_for(domain)
print([augmenter.augment(example, random) for example in domain.examples[:50]])
"""
NOT_IN_WORLD = re.compile("no such meeting:|\\w+ has no manager")
KINDS = {"name": ["Elena", "Tom", "Iris"], "day": ["Monday", "Friday"]}


def accept(example: Example) -> bool:
    return True


def augment(utterance: str, program: str, seed: int = 0) -> Example:
    return NameSwap(KINDS, accept).augment(Example(utterance, program), np.random.default_rng(seed))


def test_a_name_becomes_another_of_its_kind_in_utterance_and_output_alike() -> None:
    programs = {augment("is Elena free", "(free Elena)", seed).program for seed in range(20)}
    assert programs == {"(free Tom)", "(free Iris)"}
    utterances = {augment("is Elena free", "(free Elena)", seed).utterance for seed in range(20)}
    assert utterances == {"is Tom free", "is Iris free"}


def test_an_utterance_in_lower_case_stays_in_lower_case() -> None:
    augmented = augment("is elena free", "(free Elena)", 1)
    assert augmented.utterance in ("is tom free", "is iris free")
    assert augmented.program.lower() == augmented.utterance.replace("is ", "(free ").replace(" free", ")")


def test_two_names_stay_distinct() -> None:
    for seed in range(20):
        augmented = augment("invite Elena and Tom on Monday", "(invite Elena Tom (on Monday))", seed)
        names = augmented.program.removeprefix("(invite ").split(" (")[0].split()
        assert len(set(names)) == 2
        assert augmented.utterance == f"invite {names[0]} and {names[1]} on Friday"


def test_a_name_that_is_only_in_the_utterance_is_not_replaced() -> None:
    same = Example("is Elena free", "(free somebody)")
    assert NameSwap(KINDS, accept).augment(same, np.random.default_rng(0)) == same


def test_an_example_is_returned_unchanged_if_the_grammar_rejects_the_result() -> None:
    example = Example("is Elena free", "(free Elena)")
    assert NameSwap(KINDS, lambda augmented: False).augment(example, np.random.default_rng(0)) == example


def test_augmented_examples_of_the_calendar_are_correct() -> None:
    domain = load_domain("calendar")
    augmenter = augmenter_for(domain)
    assert augmenter is not None
    random = np.random.default_rng(3)
    augmented = [augmenter.augment(example, random) for example in domain.examples]
    changed = [new for new, old in zip(augmented, domain.examples, strict=True) if new != old]
    assert len(changed) > len(domain.examples) / 4
    for example in changed:
        assert example.canonical is not None
        assert domain.program_of(example.canonical, "canonical") == example.program
    errors = filter(None, (execution_error(domain, example.program) for example in changed))
    assert [error for error in errors if not NOT_IN_WORLD.match(error)] == []


def execution_error(domain: Domain, program: str) -> str | None:
    """The message of the error, if there is one; the small world lacks some meetings and managers."""
    try:
        domain.execute(program)
    except ExecutionError as error:
        return error.message
    return None


def test_the_same_seed_gives_the_same_examples_in_every_process() -> None:
    def output(hash_seed: str) -> bytes:
        variables = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", SCRIPT], env=variables, capture_output=True, check=True
        ).stdout

    assert output("1") == output("2")
