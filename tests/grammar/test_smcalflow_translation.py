"""A real grammar on real programs: rules induced from SMCalFlow's type tables, with literal rules of ours.

Its authors' canonical utterances are an independent judge. They have a few rules more, which say some things
shorter, and prefer the shortest: so theirs is ours, or shorter.
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
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data of SMCalFlow is not at hand")


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


def test_the_canonical_utterance_is_that_of_the_authors_unless_theirs_is_shorter() -> None:
    spoken = {f" {row['program']}": f" {row['canonical']}" for row in rows("dev_all.jsonl.gz") if row["canonical"]}
    sample = random.Random(0).sample(sorted(spoken), 800)
    ours = {program: translator().to_utterance(program).best for program in sample}
    different = {program: ours[program] for program in sample if ours[program] != spoken[program]}
    assert all(said is not None and len(spoken[program]) < len(said) for program, said in different.items())
    assert len(different) < 0.3 * len(sample)


def test_what_was_learned_from_other_programs_brings_nine_of_ten_back() -> None:
    learned = translator().learn(f" {row['program']}" for row in rows("train_300.jsonl"))
    programs = [f" {row['program']}" for row in rows("dev_200.jsonl")]
    back = {"shortest": 0, "learned": 0}
    for program in programs:
        utterance = translator().to_utterance(program).best
        assert utterance is not None
        back["shortest"] += translator().to_program(utterance).best == program
        back["learned"] += learned.to_program(utterance).best == program
    assert back["shortest"] < back["learned"]
    assert back["learned"] >= 0.9 * len(programs)
