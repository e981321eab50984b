"""Any utterance ends in a well-formed parse or an error, and every result is valid JSON."""

import json
import random
from pathlib import Path

import pytest

from fewparse.constrain.cfg import CfgConstraint
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import ContextOverflow, UsageError
from fewparse.example import Target
from fewparse.lm.embedded import EmbeddedModel
from fewparse.options import Options
from fewparse.parser import Parser
from fewparse.text import printable, to_json
from fewparse.vocabulary import BYTES
from support.campaign import sizes
from support.cli_runner import fewparse
from support.odd_utterances import KINDS
from support.toy_model import LongContextToyModel

QUICK_KINDS = ("plain", "control characters", "NUL", "right to left", "surrogates", "white space", "one character")


@pytest.fixture(scope="module")
def calendar() -> Domain:
    return load_domain("calendar")


@pytest.fixture(scope="module")
def programs(calendar: Domain) -> CfgConstraint:
    return CfgConstraint(calendar.side("program"), BYTES)


@pytest.fixture(scope="module")
def tuned(calendar: Domain, model: EmbeddedModel) -> Parser:
    return Parser(calendar, model, Options.resolve(calendar, "embedded", decoder="greedy", max_tokens=16))


@pytest.fixture(scope="module")
def toys(calendar: Domain) -> list[Parser]:
    """Parsers with a model of random tokens: each decoder, both targets."""
    chosen: list[tuple[str, Target]] = [("speculative", "canonical"), ("beam", "program"), ("greedy", "program")]
    return [
        Parser(
            calendar.for_target(target),
            LongContextToyModel(seed),
            Options.resolve(calendar, target=target, decoder=decoder, width=2, max_tokens=60, examples=1),
        )
        for seed, (decoder, target) in enumerate(chosen)
    ]


def check(parser: Parser, utterance: str, programs: CfgConstraint) -> None:
    """Parse an utterance; the result must be well-formed, or an error that can be shown."""
    try:
        found = parser.parse(utterance)
    except (ContextOverflow, UsageError) as error:
        printable(str(error)).encode()
        return
    assert json.loads(to_json(found.as_dict()))["utterance"] == utterance
    for candidate in found.candidates:
        assert candidate.program is None or programs.accepts(candidate.program.encode())


@pytest.mark.parametrize("kind", KINDS)
def test_the_embedded_model_parses_odd_utterances(kind: str, tuned: Parser, programs: CfgConstraint) -> None:
    check(tuned, KINDS[kind](random.Random(kind)), programs)


@sizes("count", default=6, campaign=60)
@pytest.mark.parametrize("kind", KINDS)
def test_every_decoder_parses_odd_utterances(
    kind: str, count: int, toys: list[Parser], programs: CfgConstraint
) -> None:
    rng = random.Random(f"{kind} {count}")
    for i in range(count):
        check(toys[i % len(toys)], KINDS[kind](rng), programs)


def test_an_utterance_beyond_the_context_is_refused_with_both_lengths(tuned: Parser) -> None:
    with pytest.raises(ContextOverflow, match=r"needs \d+ tokens and the model's context holds 8192"):
        tuned.parse("日本 budget " * 10_000)


def test_standard_input_of_odd_lines_gives_a_json_object_per_line(tmp_path: Path) -> None:
    lines = [KINDS[kind](random.Random(1)) for kind in QUICK_KINDS]
    text = b"\n".join(line.replace("\n", " ").encode(errors="surrogatepass") for line in lines)
    result = fewparse("parse", "calendar", "--decoder", "greedy", "--max-tokens", "12", "--json", stdin=text)
    objects = [json.loads(line) for line in result.out.splitlines()]
    assert len(objects) == sum(bool(line.strip()) for line in text.split(b"\n"))
    assert not any(ord(char) < 32 for char in result.err if char != "\n")
