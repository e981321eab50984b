"""What models behind servers share: the questions of search become requests, which each kind writes its way."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from fewparse.errors import ServerUnfit
from fewparse.lm.http.batching import Ask, Asker
from fewparse.lm.http.budget import Budget
from fewparse.lm.http.capabilities import NO_CUT_OFFS, USUAL_CONTEXT, Capabilities
from fewparse.lm.http.client import Server
from fewparse.lm.http.responses import Reader, unlisted, whole
from fewparse.lm.http.wire import Choice
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask

DEFAULT_MAX_CONCURRENCY = 8
USUAL_TOP = 100
MOST_IN_A_LIST = 64
TRIES_IF_SILENT = 3
BYTES_A_TOKEN = 3


class RemoteModel(ABC):
    """A model behind a server. `top` is how many next tokens it is asked for."""

    path: str
    kind: str
    local = False

    def __init__(
        self,
        server: Server,
        model: str,
        capabilities: Capabilities,
        budget: Budget,
        max_concurrency: int | None = None,
        context_length: int | None = None,
        top: int = USUAL_TOP,
    ) -> None:
        self.name = f"{self.kind}:{model}@{server.url}"
        self.max_concurrency = max_concurrency or capabilities.slots or DEFAULT_MAX_CONCURRENCY
        self.context_length = context_length or capabilities.context or USUAL_CONTEXT
        self.vocabulary = capabilities.vocabulary
        self._abilities = capabilities
        self._model = model
        self._top = min(top, capabilities.top)
        self._asker = Asker(server, self.path, budget, self.max_concurrency, self.vocabulary is None)
        self._reader = Reader(self.vocabulary, frozenset(capabilities.end_ids))

    @property
    def supports_prefix(self) -> bool:
        """Whether it can be asked what follows the beginning of an output."""
        return True

    @property
    def supports_grammar(self) -> bool:
        """Whether its server keeps samples to a grammar."""
        return self._abilities.grammar is not None

    def close(self) -> None:
        """End the connections."""
        self._asker.close()

    @abstractmethod
    def tokenize(self, text: str) -> Prefix:
        """The server's tokens of a text; where it does not tell them, the text as one."""

    @abstractmethod
    def prompt_length(self, prompt: Prompt) -> int:
        """How many tokens the prompt has; an estimate where the server does not tell."""

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """The best k next tokens of each prefix that the server tells.

        Under a mask these are the allowed ones among its first hundred (or whatever `top` is); where none of
        these is allowed, it is asked further.
        """
        masks = allowed if allowed is not None else [None] * len(prefixes)
        top = min(max(k, self._top), self._abilities.top)
        found = self._thoughts(prompt, prefixes, k, stop, usage, masks, top)
        if top < self._abilities.top:
            none = [i for i, mask in enumerate(masks) if mask is not None and not found[i].best and mask.any()]
            chosen = [prefixes[i] for i in none], [mask for i in none if (mask := masks[i]) is not None]
            for i, thought in zip(none, self._beyond_top(prompt, *chosen, k, stop, usage), strict=True):
                found[i] = thought
        return found

    def _thoughts(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        masks: Sequence[Mask | None],
        top: int,
    ) -> list[NextTokens]:
        told = self._told(prompt, prefixes, top, usage)
        return [
            self._reader.thought(tokens, k, stop, self._text(prompt, prefix), mask)
            for prefix, tokens, mask in zip(prefixes, told, masks, strict=True)
        ]

    def _beyond_top(
        self, prompt: Prompt, prefixes: Sequence[Prefix], masks: Sequence[Mask], k: int, stop: bytes, usage: Usage
    ) -> list[NextTokens]:
        """Where no likely token is allowed: all tokens that the server tells."""
        return self._thoughts(prompt, prefixes, k, stop, usage, masks, self._abilities.top)

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        """`n` completions of each prefix, in as few requests as the server allows."""
        guides = guides or [None] * len(prefixes)
        wanted = sampling.n if sampling.temperature > 0 else 1
        max_concurrency = min(wanted, self._abilities.n) if self._abilities.distinct else 1
        asks, places = [], []
        for which, prefix in enumerate(prefixes):
            for first in range(0, wanted if len(prefix) < sampling.max_tokens else 0, max_concurrency):
                asks.append(
                    self._sampling_ask(
                        prompt, prefix, sampling, min(max_concurrency, wanted - first), which, first
                    )
                )
                places.append(which)
        groups: list[list[Completion]] = [[] for _ in prefixes]
        for which, choices in zip(places, self._asker.samples(asks, usage), strict=True):
            prefix, guide = prefixes[which], guides[which]
            text = self._text(prompt, prefix)
            groups[which] += [self._completion(c, prompt, prefix, sampling, guide, text) for c in choices]
        nothing = [Completion((), (), (), False)]
        groups = [(group or nothing) * (sampling.n // len(group or nothing)) for group in groups]
        return self._with_endings(prompt, prefixes, groups, sampling, usage)

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """The log-probability of each token of a continuation, asked where it would be the next one.

        If a token is not told even among all that the server tells, it gets the most that it can have.
        """
        steps = [
            ((*prefix, *continuation[:i]), token)
            for prefix, continuation in zip(prefixes, continuations, strict=True)
            for i, token in enumerate(continuation)
        ]
        found: dict[tuple[Prefix, Token], float] = {}
        for top in sorted({self._top, self._abilities.top}):
            left = [step for step in dict.fromkeys(steps) if step not in found]
            told = self._told(prompt, [prefix for prefix, _ in left], top, usage)
            for step, tokens in zip(left, told, strict=True):
                score = next((s.logprob for s in tokens if same(s.token, step[1])), None)
                if score is not None or top == self._abilities.top:
                    found[step] = unlisted(tokens) if score is None else score
        scores = iter([found[step] for step in steps])
        return [tuple(next(scores) for _ in continuation) for continuation in continuations]

    @abstractmethod
    def _next_ask(self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, again: int = 0) -> Ask:
        """What may come next; the one token that is sampled does not matter, if only it can be told."""

    @abstractmethod
    def _sampling_ask(
        self, prompt: Prompt, prefix: Prefix, sampling: Sampling, n: int, which: int, first: int
    ) -> Ask:
        """`n` samples of one prefix, the `which`th of this round, `first` being those asked for before."""

    def _text(self, prompt: Prompt, prefix: Prefix) -> bytes | None:
        """What a prefix says, where it is sent as text; None where as ids."""
        return whole(prefix)

    def _completion(
        self,
        choice: Choice,
        prompt: Prompt,
        prefix: Prefix,
        sampling: Sampling,
        guide: Guide | None,
        text: bytes | None,
    ) -> Completion:
        return self._reader.completion(choice, len(prefix), sampling, guide, text)

    def _told(
        self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, usage: Usage
    ) -> list[tuple[ScoredToken, ...]]:
        """The most likely next tokens of each prefix, as many as asked for."""
        size = MOST_IN_A_LIST if self._abilities.batches else 1
        groups = [prefixes[i : i + size] for i in range(0, len(prefixes), size)]
        replies = self._asker.round([self._next_ask(prompt, group, top) for group in groups], usage)
        choices = [choice for reply in replies for choice in reply.choices]
        # A sampled half of a character or a hidden end makes a server silent: then another token is asked for.
        for again in range(1, TRIES_IF_SILENT + 1):
            silent = [i for i, choice in enumerate(choices) if not choice.entries]
            asks = [self._next_ask(prompt, [prefixes[i]], top, again) for i in silent]
            for i, reply in zip(silent, self._asker.round(asks, usage), strict=True):
                choices[i] = reply.choices[0]
        return [choice.entries[0].alternatives if choice.entries else () for choice in choices]

    def _with_endings(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        groups: list[list[Completion]],
        sampling: Sampling,
        usage: Usage,
    ) -> list[list[Completion]]:
        """Completions that ended without a word of what the model thought there: that is asked for."""
        pairs = [(prefix, c) for prefix, group in zip(prefixes, groups, strict=True) for c in group]
        asked = sorted({(*prefix, *c.tokens) for prefix, c in pairs if ended_silently(c)})
        thoughts = self.next_tokens(prompt, asked, sampling.alternatives, sampling.stop, usage)
        known = dict(zip(asked, thoughts, strict=True))

        def told(prefix: Prefix, completion: Completion) -> Completion:
            if not ended_silently(completion):
                return completion
            return completion._replace(positions=(*completion.positions, known[(*prefix, *completion.tokens)]))

        return [[told(prefix, c) for c in group] for prefix, group in zip(prefixes, groups, strict=True)]

    def _grammar(self, grammar: str) -> dict[str, Any]:
        """A grammar as the server takes it."""
        if self._abilities.grammar is None:
            raise ServerUnfit(f"{self._asker.server.url} takes no grammar", "Leave --server-grammar out.")
        if self._abilities.grammar == "structured_outputs":
            return {"structured_outputs": {"grammar": grammar}}
        return {"grammar" if self._abilities.grammar == "gbnf" else "guided_grammar": grammar}

    def _temperature(self, sampling: Sampling) -> float:
        """The temperature asked for; 1 where log-probabilities would come out tempered."""
        return sampling.temperature if self._abilities.untempered else 1.0

    def _any_token(self, again: int) -> dict[str, Any]:
        """How to sample one token, whichever; hotter where it should be another than before."""
        return {"max_tokens": 1, "temperature": 2 if again and self._abilities.untempered else 1, "seed": again}

    def _plain(self) -> dict[str, Any]:
        """No cut-offs."""
        return {"top_p": 1} | (NO_CUT_OFFS if self._abilities.plain_sampling else {})


def ended_silently(completion: Completion) -> bool:
    """Whether a completion ended where the server does not show what the model thought."""
    return completion.ended and len(completion.positions) == len(completion.tokens)


def same(one: Token, other: Token) -> bool:
    """Whether two tokens are the same, by their ids where both have one."""
    return one.id == other.id if one.id >= 0 and other.id >= 0 else one.bytes == other.bytes


def seed_of(*parts: int) -> int:
    """A seed for each sample of each prefix of each round."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) % 2**31


def estimate(text: str) -> int:
    """About how many tokens a text has, rather more than fewer."""
    return len(text.encode()) // BYTES_A_TOKEN + 1
