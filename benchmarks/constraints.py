"""Measure the speed of constraints on the calendar grammar, and compare it with a forward pass of the model.

Run: make bench.
"""

import random
import time
from collections.abc import Callable

import numpy as np

from fewparse import Usage, load_domain, open_model
from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.copying import CopyGrammar
from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.prompt import Part, Prompt
from measure import write

WALKS = 60


def main() -> None:
    """Write one row per constraint: the times to compile, mask and advance."""
    domain = load_domain("calendar")
    model = open_model()
    vocabulary = model.vocabulary
    assert vocabulary is not None
    utterance = domain.test_examples[0].utterance
    copy = domain.table.constraint.copy_rules
    programs = CopyGrammar(domain.grammar, copy, vocabulary)
    utterances = CopyGrammar(domain.side("canonical"), copy, vocabulary)
    long_utterance = " ".join(f"word{i}" for i in range(4_000))
    makers: dict[str, Callable[[], Constraint]] = {
        "calendar programs": lambda: CfgConstraint(domain.grammar, vocabulary),
        "calendar programs, copy spans": lambda: programs.constraint(utterance),
        "calendar programs, copy spans compiled in": lambda: programs.with_spans(utterance),
        "calendar utterances": lambda: CfgConstraint(domain.side("canonical"), vocabulary),
        "calendar utterances, copy spans": lambda: utterances.constraint(utterance),
        "calendar utterances, copy spans compiled in": lambda: utterances.with_spans(utterance),
        "calendar utterances, copy spans of 4,000 words": lambda: utterances.constraint(long_utterance),
        "trie of the training programs": lambda: Trie([e.program for e in domain.examples], vocabulary),
    }
    for warm in (programs, utterances):  # convert the vocabulary and compile the grammar, once per process
        warm.constraint(utterance)
    forward_pass = forward_pass_seconds()
    rows = []
    for name, make in makers.items():
        start = time.perf_counter()
        constraint = make()
        compile_seconds = time.perf_counter() - start
        masks, advances = walk(constraint)
        rows.append(
            {
                "constraint": name,
                "compile ms": round(compile_seconds * 1e3, 1),
                "mask µs (p50)": round(float(np.median(masks)) * 1e6, 1),
                "mask µs (mean)": round(float(np.mean(masks)) * 1e6, 1),
                "advance µs (p50)": round(float(np.median(advances)) * 1e6, 1),
                "mask / forward pass": round(float(np.mean(masks)) / forward_pass, 5),
            }
        )
    write("constraints", rows)


def walk(constraint: Constraint) -> tuple[list[float], list[float]]:
    """Return the seconds of each mask and of each advance along random walks."""
    generator = random.Random(0)
    masks, advances = [], []
    for _ in range(WALKS):
        state = constraint.start()
        for _ in range(40):
            start = time.perf_counter()
            mask = state.mask()
            masks.append(time.perf_counter() - start)
            ids = np.flatnonzero(mask)
            if len(ids) == 0:
                break
            token = constraint.vocabulary.tokens[int(generator.choice(ids))]
            start = time.perf_counter()
            next_state = state.advance(token)
            advances.append(time.perf_counter() - start)
            assert next_state is not None
            state = next_state
    return masks, advances


def forward_pass_seconds() -> float:
    """Return the mean time of a forward pass of the embedded model over one token."""
    model = open_model()
    prompt = Prompt((Part("A list of words:", False),))
    words = model.tokenize(" one two three four five six seven eight nine ten")
    model.next_tokens(prompt, [()], 1, b"\n", Usage())
    start = time.perf_counter()
    for i in range(1, len(words) + 1):
        model.next_tokens(prompt, [words[:i]], 1, b"\n", Usage())
    seconds = time.perf_counter() - start
    model.close()
    return seconds / len(words)


if __name__ == "__main__":
    main()
