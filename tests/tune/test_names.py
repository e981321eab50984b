"""Lessons with other names: the same in utterance and output, and only what the grammar admits."""

import os
import re
import subprocess
import sys

import numpy as np

from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import ExecutionError
from fewparse.example import Example
from fewparse.tune.names import Names
from fewparse.tune.variation import variation

TOLD = """
import numpy as np
from fewparse.domains.load import load_domain
from fewparse.tune.variation import variation
domain, random = load_domain("calendar"), np.random.default_rng(0)
names = variation(domain)
print([names.vary(example, random) for example in domain.examples[:50]])
"""
LACKING = re.compile("no such meeting:|\\w+ has no manager")
KINDS = {"name": ["Elena", "Tom", "Iris"], "day": ["Monday", "Friday"]}


def everything(example: Example) -> bool:
    return True


def vary(utterance: str, program: str, seed: int = 0) -> Example:
    return Names(KINDS, everything).vary(Example(utterance, program), np.random.default_rng(seed))


def test_a_name_becomes_another_of_its_kind_in_utterance_and_output_alike() -> None:
    varied = {vary("is Elena free", "(free Elena)", seed).program for seed in range(20)}
    assert varied == {"(free Tom)", "(free Iris)"}
    assert {vary("is Elena free", "(free Elena)", s).utterance for s in range(20)} == {
        "is Tom free",
        "is Iris free",
    }


def test_what_is_written_small_stays_small_where_all_of_it_is() -> None:
    varied = vary("is elena free", "(free Elena)", 1)
    assert varied.utterance in ("is tom free", "is iris free")
    assert varied.program.lower() == varied.utterance.replace("is ", "(free ").replace(" free", ")")


def test_two_names_stay_two() -> None:
    for seed in range(20):
        varied = vary("invite Elena and Tom on Monday", "(invite Elena Tom (on Monday))", seed)
        names = varied.program.removeprefix("(invite ").split(" (")[0].split()
        assert len(set(names)) == 2
        assert varied.utterance == f"invite {names[0]} and {names[1]} on Friday"


def test_a_name_that_only_one_side_has_is_left_alone() -> None:
    same = Example("is Elena free", "(free somebody)")
    assert Names(KINDS, everything).vary(same, np.random.default_rng(0)) == same


def test_what_the_grammar_does_not_admit_stays_as_it_was() -> None:
    example = Example("is Elena free", "(free Elena)")
    assert Names(KINDS, lambda varied: False).vary(example, np.random.default_rng(0)) == example


def test_varied_examples_of_the_calendar_mean_what_they_say() -> None:
    domain = load_domain("calendar")
    names = variation(domain)
    assert names is not None
    random = np.random.default_rng(3)
    varied = [names.vary(example, random) for example in domain.examples]
    changed = [new for new, old in zip(varied, domain.examples, strict=True) if new != old]
    assert len(changed) > len(domain.examples) / 4
    for example in changed:
        assert example.canonical is not None
        assert domain.program_of(example.canonical, "canonical") == example.program
    refused = filter(None, (refusal(domain, example.program) for example in changed))
    assert [reason for reason in refused if not LACKING.match(reason)] == []


def refusal(domain: Domain, program: str) -> str | None:
    """Why a program cannot be executed; the small world lacks some of what names may ask for."""
    try:
        domain.execute(program)
    except ExecutionError as error:
        return error.message
    return None


def test_the_same_seed_varies_the_same_in_every_process() -> None:
    def told(hash_seed: str) -> bytes:
        variables = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run([sys.executable, "-c", TOLD], env=variables, capture_output=True, check=True).stdout

    assert told("1") == told("2")
