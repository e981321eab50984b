"""Translation of real programs with a real grammar: SMCalFlow's type tables, with literal rules of our own.

The canonical utterances of the authors are an independent reference. Their grammar has a few more rules, for
shorter utterances, and they also use the shortest utterance: theirs is therefore equal to ours, or shorter.
"""

import gzip
import json
import random
from functools import cache
from pathlib import Path

import pytest

from fewparse.grammar.readers.load import folder_sources
from fewparse.grammar.readers.scfg import read_scfg
from fewparse.grammar.translation.translator import Translator

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "smcalflow"
LITERALS = ROOT / "benchmarks" / "smcalflow" / "literals.scfg"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the SMCalFlow data is not available")


@cache
def translator() -> Translator:
    sources = folder_sources(DATA / "released-grammar")
    return Translator(read_scfg([*sources, (LITERALS.name, LITERALS.read_text(encoding="utf-8"))]))


def rows(name: str) -> list[dict[str, str]]:
    raw = (DATA / name).read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    return [json.loads(line) for line in text.decode("utf-8").splitlines()]


def test_there_are_about_a_thousand_rules() -> None:
    assert 1_000 <= len(translator().grammar.rules) <= 1_100


def test_the_canonical_utterance_equals_that_of_the_authors_unless_theirs_is_shorter() -> None:
    reference = {
        f" {row['program']}": f" {row['canonical']}" for row in rows("dev_all.jsonl.gz") if row["canonical"]
    }
    sample = random.Random(0).sample(sorted(reference), 800)
    ours = {program: translator().to_utterance(program).best for program in sample}
    different = {program: ours[program] for program in sample if ours[program] != reference[program]}
    assert all(own is not None and len(reference[program]) < len(own) for program, own in different.items())
    assert len(different) < 0.3 * len(sample)


def test_a_scorer_learned_from_other_programs_recovers_nine_of_ten_programs() -> None:
    learned = translator().with_learned_scorer(f" {row['program']}" for row in rows("train_300.jsonl"))
    programs = [f" {row['program']}" for row in rows("dev_200.jsonl")]
    recovered = {"shortest": 0, "learned": 0}
    for program in programs:
        utterance = translator().to_utterance(program).best
        assert utterance is not None
        recovered["shortest"] += translator().to_program(utterance).best == program
        recovered["learned"] += learned.to_program(utterance).best == program
    assert recovered["shortest"] < recovered["learned"]
    assert recovered["learned"] >= 0.9 * len(programs)
