"""Constraint speed on the calendar grammar, beside one forward pass of the embedded model, in one run.

Run: make bench.
"""

import random
import time
from collections.abc import Callable

import numpy as np

from fewparse import Usage, load_domain, open_model
from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.prompt import Part, Prompt
from measure import write

WALKS = 60


def main() -> None:
    """One row a constraint: compile, mask and advance, as shares of one forward pass."""
    domain = load_domain("calendar")
    model = open_model()
    vocabulary = model.vocabulary
    assert vocabulary is not None
    utterance = domain.test_examples[0].utterance
    copy = domain.table.constraint.copy_rules
    makers: dict[str, Callable[[], Constraint]] = {
        "calendar programs": lambda: CfgConstraint(domain.grammar, vocabulary),
        "calendar programs, copy spans": lambda: CfgConstraint(domain.grammar, vocabulary, "", copy, utterance),
        "calendar utterances": lambda: CfgConstraint(domain.side("canonical"), vocabulary),
        "calendar utterances, copy spans": lambda: CfgConstraint(
            domain.side("canonical"), vocabulary, "", copy, utterance
        ),
        "trie of the training programs": lambda: Trie([e.program for e in domain.examples], vocabulary),
    }
    makers["calendar programs"]()  # makes the engine's form of the vocabulary, once a process
    one_pass = forward_pass_seconds()
    rows = []
    for name, make in makers.items():
        begin = time.perf_counter()
        constraint = make()
        compiled = time.perf_counter() - begin
        masks, advances = walk(constraint)
        rows.append(
            {
                "constraint": name,
                "compile ms": round(compiled * 1e3, 1),
                "mask µs (p50)": round(float(np.median(masks)) * 1e6, 1),
                "mask µs (mean)": round(float(np.mean(masks)) * 1e6, 1),
                "advance µs (p50)": round(float(np.median(advances)) * 1e6, 1),
                "mask / forward pass": round(float(np.mean(masks)) / one_pass, 5),
            }
        )
    write("constraints", rows)


def walk(constraint: Constraint) -> tuple[list[float], list[float]]:
    """Seconds of masks and advances along random walks."""
    chance = random.Random(0)
    masks, advances = [], []
    for _ in range(WALKS):
        state = constraint.start()
        for _ in range(40):
            begin = time.perf_counter()
            mask = state.mask()
            masks.append(time.perf_counter() - begin)
            ids = np.flatnonzero(mask)
            if len(ids) == 0:
                break
            piece = constraint.vocabulary.tokens[int(chance.choice(ids))]
            begin = time.perf_counter()
            following = state.advance(piece)
            advances.append(time.perf_counter() - begin)
            assert following is not None
            state = following
    return masks, advances


def forward_pass_seconds() -> float:
    """The mean of single-token passes of the embedded model."""
    model = open_model()
    prompt = Prompt((Part("A list of words:", False),))
    words = model.tokenize(" one two three four five six seven eight nine ten")
    model.next_tokens(prompt, [()], 1, b"\n", Usage())
    begin = time.perf_counter()
    for i in range(1, len(words) + 1):
        model.next_tokens(prompt, [words[:i]], 1, b"\n", Usage())
    seconds = time.perf_counter() - begin
    model.close()
    return seconds / len(words)


if __name__ == "__main__":
    main()
