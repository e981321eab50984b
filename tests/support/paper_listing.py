"""The listing of the paper's appendix (Shin and Van Durme, 2022), transcribed line by line.

It works on plain token lists. `nextTokens` is computed from the whole string each time, and the model's answers
come from a record. Nothing of `fewparse.search` is used.
"""

import math
from dataclasses import dataclass, field

from fewparse.constrain.state import Constraint
from fewparse.lm.model import Token
from support.recorded_model import RecordedModel

EOS = Token(b"", -2)
Tokens = list[tuple[Token, float]]
"""Tokens after the prompt, each with its log-probability."""


def text_of(tokens: Tokens) -> bytes:
    """Return the bytes of the tokens."""
    return b"".join(token.bytes for token, _ in tokens)


def length_normalized_logprob(tokens: Tokens) -> float:
    """Return the score of a token sequence: GNMT's length normalisation with the exponent 0.7."""
    return sum(logprob for _, logprob in tokens) / math.pow(5 + len(tokens), 0.7) * math.pow(6, 0.7)


@dataclass
class Listing:
    """The parameters of the listing, its helper functions, and what its rounds kept."""

    model: RecordedModel
    constraint: Constraint
    W: int
    MAX_STEPS: int
    max_tokens: int
    number: int = 0
    calls: int = 0
    kept: list[list[Tokens]] = field(default_factory=list)
    asked: dict[tuple[Token, ...], Tokens] = field(default_factory=dict)

    def is_next(self, token: Token, prefix: Tokens) -> bool:
        """Return whether `token in nextTokens(prefix)`."""
        text = text_of(prefix)
        if token == EOS:
            return self.constraint.accepts(text)
        return bool(token.bytes) and self.constraint.start().advance(text + token.bytes) is not None

    def is_finished(self, tokens: Tokens) -> bool:
        """Return whether the end was generated, or `nextTokens` contains nothing else."""
        if tokens[-1][0] == EOS:
            return True
        state = self.constraint.start().advance(text_of(tokens))
        assert state is not None
        return not state.mask().any()

    def model_completions(self, tokens: Tokens) -> list[Tokens]:
        """Return the samples after a prefix; a sample that ended has EOS as its last token."""
        self.calls += 1
        samples = []
        for completion in self.model.take_samples(self.number, tuple(token for token, _ in tokens)):
            sample = list(zip(completion.tokens, completion.logprobs, strict=True))
            if completion.ended:
                sample += [(EOS, completion.positions[len(sample)].end_logprob)]
            samples += [sample]
        return samples

    def w_best_tokens(self, tokens: Tokens) -> Tokens:
        """Return the W best allowed next tokens; the model is asked once about each prefix."""
        prefix = tuple(token for token, _ in tokens)
        if prefix not in self.asked:
            self.calls += 1
            found = self.model.take_next_tokens(prefix)
            scored = [(choice.token, choice.logprob) for choice in found.best] + [(EOS, found.end_logprob)]
            allowed = [choice for choice in scored if self.is_next(choice[0], tokens)]
            self.asked[prefix] = sorted(allowed, key=lambda choice: -choice[1])[: self.W]
        return self.asked[prefix]

    def expand(self, tokens: Tokens) -> list[Tokens]:
        if len(tokens) >= self.max_tokens:
            return []
        samples = self.model_completions(tokens)

        results: list[Tokens] = []
        for sample in samples:
            valid_prefix = tokens
            for token, logprob in sample:
                if not self.is_next(token, valid_prefix):
                    break
                valid_prefix = [*valid_prefix, (token, logprob)]
            if valid_prefix == tokens:
                results += [[*tokens, choice] for choice in self.w_best_tokens(tokens)]
            else:
                results += [valid_prefix]
        return results

    def search(self) -> list[Tokens]:
        beam: list[Tokens] = [[]]
        finished: list[Tokens] = []

        for _ in range(self.MAX_STEPS):
            self.number += 1
            candidates = []
            for state in beam:
                candidates += self.expand(state)
            candidates.sort(key=length_normalized_logprob, reverse=True)

            new_beam = []
            for cand in candidates:
                if self.is_finished(cand):
                    finished.append(cand)
                else:
                    new_beam.append(cand)
                if len(finished) + len(new_beam) == self.W:
                    break
            self.kept.append([*finished, *new_beam])

            if len(new_beam) == 0:
                break
            beam = new_beam

        return finished
