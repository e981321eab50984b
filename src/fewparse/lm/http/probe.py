"""Probe a server: test with a few small requests what it supports, instead of relying on its documentation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any, TypeVar

from fewparse.errors import ServerUnavailable
from fewparse.lm.http.capabilities import (
    CONTINUATION_FIELDS,
    GRAMMAR_FIELDS,
    NO_CUTOFFS,
    NOISE,
    Capabilities,
    Continuation,
    GrammarField,
    StopHandling,
    Tokenizer,
    echo_is_correct,
    full_vocabulary,
    grammar_field,
    is_untempered,
    same_prediction,
    stop_candidate,
    stop_handling,
    valid_end_ids,
)
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.probe_requests import COMPLETION_TOKENS, ProbeRequests
from fewparse.lm.http.reported import Reported, read_reported
from fewparse.lm.http.responses import END_BYTES, END_TOKENS
from fewparse.lm.http.schema import parse_ids, parse_tokens
from fewparse.lm.http.wire import Choice, LogprobsFormat, Reply, logprobs_format, parse_reply, spelling
from fewparse.lm.model import ScoredToken
from fewparse.vocabulary import is_text

T = TypeVar("T")
PROMPTS = (
    "One, two, three, four, five, six,",
    "Once upon a time",
    "a b c d e f g",
    "The days of the week are",
    "x y z",
)
"""The first prompt that the model completes at sufficient length is used for all tests."""
SECOND_PROMPT = "The sun is"
VARIED_PROMPT = "Write a random number of ten digits."
"""A prompt whose samples differ, also those of a strong model; for servers without log-probabilities."""
SAMPLE_COUNTS = (2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
TOP_LOGPROBS = (1, 5, 10, 20, 50, 100, 1000)
CHAT_TOP_LOGPROBS = (1, 5, 10, 20, 100)
MAX_COMPARED_LOGPROBS = 1000
COMPARED_ECHO_TOKENS, SEEDS = 6, 5
TEXT_SAMPLE_COUNTS = SAMPLE_COUNTS[:4]
LITERAL = "zq!"
LITERAL_GRAMMARS = (f'root ::= "{LITERAL}"', f'start: "{LITERAL}"')
"""The same in GBNF and in Lark."""
SCORED_GRAMMARS: tuple[GrammarField, ...] = ("gbnf", "structured_outputs", "guided_grammar", "ebnf")
"""All but the custom tool, whose input has no log-probabilities."""


def probe(client: HttpClient, model: str, chat: bool = False) -> Capabilities:
    """Return what a server supports for a model; raise ServerError if it cannot be used."""
    return Probe(client, model, chat).run()


class Probe(ProbeRequests):
    """The tests of one endpoint."""

    def __init__(self, client: HttpClient, model: str, chat: bool) -> None:
        super().__init__(client, model, chat)
        self._prompt = PROMPTS[0]

    def run(self) -> Capabilities:
        """Run all tests; later ones use the results of earlier ones."""
        reported = read_reported(self._client, self._model)
        style, greedy = self._choose_prompt()
        vocabulary_size = reported.vocabulary_size or 0
        alternatives = self._most_alternatives(vocabulary_size) if style is not None else ()
        if not alternatives:
            return self._whole_outputs(reported)
        tokenizer, ids = self._tokenizer()
        n = self._max_n()
        zero = not self._chat and self._passes(lambda: not self._complete(max_tokens=0).choices[0].text)
        lists = not self._chat and self._prompt_lists(greedy)
        tokens = None if self._chat else full_vocabulary(alternatives, vocabulary_size)
        end_ids = self._end_ids() if tokenizer == "llama.cpp" else ()
        return Capabilities(
            chat=self._chat,
            logprobs_format=style,
            top_logprobs=len(alternatives),
            unrestricted_sampling=bool(self._cutoffs),
            max_n=n,
            distinct_samples=n > 1 and self._distinct_samples(min(n, 5)),
            seed=self._seed(),
            stop=self._stop(greedy),
            untempered=self._untempered(alternatives),
            prompt_ids=not self._chat and self._prompt_ids(ids, greedy),
            prompt_lists=lists,
            echo=not self._chat and self._echo(zero, lists, min(len(alternatives), MAX_COMPARED_LOGPROBS)),
            max_tokens_zero=zero,
            tokenizer=None if self._chat else tokenizer,
            grammar=self._grammar(SCORED_GRAMMARS),
            continuation=self._continuation(greedy) if self._chat else None,
            slots=reported.slots,
            context_length=reported.context_length,
            end_ids=end_ids,
            tokens=tokens if tokens is None or valid_end_ids(end_ids, tokens) else None,
            fields=self._fields,
            ignored=reported.ignored,
        )

    def _whole_outputs(self, reported: Reported) -> Capabilities:
        """Run the tests of a server without log-probabilities."""
        self._prompt = VARIED_PROMPT
        self._find_text_fields(reported.context_length)
        counts = SAMPLE_COUNTS[:1] if self._fields.extra_tokens else TEXT_SAMPLE_COUNTS
        n = self._max_n(counts)
        return Capabilities(
            chat=self._chat,
            logprobs_format=None,
            top_logprobs=0,
            unrestricted_sampling=bool(self._cutoffs),
            max_n=n,
            distinct_samples=n > 1 and self._passes(lambda: self._distinct_samples(n, temperature=1)),
            seed=self._passes(lambda: self._seed(temperature=1)),
            stop="shown",
            untempered=True,
            grammar=self._grammar([*GRAMMAR_FIELDS] if self._chat else SCORED_GRAMMARS),
            slots=reported.slots,
            context_length=reported.context_length,
            fields=self._fields,
            ignored=reported.ignored,
        )

    def _choose_prompt(self) -> tuple[LogprobsFormat | None, Choice]:
        """Choose the test prompt; return the format of log-probabilities, if any, and the greedy completion.

        A prompt with a short completion, or one without a stop candidate, is inconclusive: the next one is tried.
        """
        first: list[tuple[LogprobsFormat, Choice]] = []

        def try_first() -> bool:
            first.append(self._completion_of(PROMPTS[0]))
            return True

        self._cutoffs = NO_CUTOFFS
        if not self._passes(try_first):
            self._cutoffs = {}
            if not self._passes(try_first):
                self._find_fields()
        if not self._scored:
            return None, Choice("", (), None)
        tried: list[tuple[int, bool, str, LogprobsFormat, Choice]] = []
        for temperature, prompt in product((0, 1), PROMPTS):
            if temperature and any(length for length, *_ in tried):
                break
            style, choice = first.pop() if first else self._completion_of(prompt, temperature)
            quality = len(choice.entries), stop_candidate(choice) is not None
            tried.append((*quality, prompt, style, choice))
            if (choice.text and not choice.entries) or quality == (COMPLETION_TOKENS, True):
                break
        length, _, self._prompt, style, choice = max(tried, key=lambda attempt: attempt[:2])
        if not length:
            return None, choice
        return style, choice

    def _completion_of(self, prompt: str, temperature: int = 0) -> tuple[LogprobsFormat, Choice]:
        formats: list[LogprobsFormat] = []

        def parse(payload: Any) -> Reply:
            reply = parse_reply(payload)
            formats.extend(map(logprobs_format, payload["choices"][:1]))
            return reply

        reply = self._complete(prompt, parse, temperature=temperature, max_tokens=COMPLETION_TOKENS)
        return formats[-1], reply.choices[0]

    def _most_alternatives(self, vocabulary_size: int) -> tuple[ScoredToken, ...]:
        """Return as many next tokens as the server lists: the whole vocabulary if possible, perhaps none."""
        longest: tuple[ScoredToken, ...] = ()

        def lists_enough(top: int) -> bool:
            nonlocal longest
            alternatives = self._next_tokens(top)[:top]
            longest = max(longest, alternatives, key=len)
            return len(alternatives) >= min(top, 2)

        if self._chat or not vocabulary_size or not self._passes(lambda: lists_enough(vocabulary_size)):
            self._largest(CHAT_TOP_LOGPROBS if self._chat else TOP_LOGPROBS, lists_enough)
        return longest

    def _next_tokens(self, top: int, temperature: int = 1) -> tuple[ScoredToken, ...]:
        """Return next tokens. Some servers list none if the end was sampled: another seed is tried then."""
        for seed in range(SEEDS):
            reply = self._complete(max_tokens=1, top=top, temperature=temperature, seed=seed)
            if reply.choices and reply.choices[0].entries:
                return reply.choices[0].entries[0].alternatives
        return ()

    def _max_n(self, counts: Sequence[int] = SAMPLE_COUNTS) -> int:
        return self._largest(counts, lambda n: len(self._complete(max_tokens=1, n=n).choices) == n) or 1

    def _distinct_samples(self, n: int, temperature: float = 1.5) -> bool:
        reply = self._complete(n=n, max_tokens=12, temperature=temperature)
        return len({choice.text for choice in reply.choices}) > 1

    def _seed(self, temperature: float = 1.5) -> bool:
        """Sample three times with one seed: the first may differ because the prompt was not in the KV cache."""
        fields: dict[str, Any] = {"max_tokens": 12, "temperature": temperature, "seed": 7}
        texts = [self._complete(**fields).choices[0].text for _ in range(3)]
        return texts[1] == texts[2]

    def _stop(self, greedy: Choice) -> StopHandling:
        """Stop at a token of the greedy completion; without a candidate, assume the worse case."""
        stop = stop_candidate(greedy)
        return "hidden" if stop is None else stop_handling(self._greedy(stop=[stop]), stop)

    def _untempered(self, alternatives: Sequence[ScoredToken]) -> bool:
        """Return whether log-probabilities do not depend on the temperature, also far from the best tokens."""
        top = min(len(alternatives), max(CHAT_TOP_LOGPROBS))
        return is_untempered(alternatives, self._next_tokens(top, temperature=2))

    def _tokenizer(self) -> tuple[Tokenizer | None, list[int]]:
        """Return which API the server's tokenizer has, and the token ids of the prompt."""
        bodies: dict[Tokenizer, dict[str, Any]] = {
            "llama.cpp": {"content": self._prompt},
            "vllm": {"model": self._model, "prompt": self._prompt},
        }
        for name, body in bodies.items():
            results: list[list[int]] = []

            def test(body: Mapping[str, Any] = body, results: list[list[int]] = results) -> bool:
                results.append(self._tokenize(body, parse_ids))
                return len(results[-1]) > 0

            try:
                if self._passes(test):
                    return name, results[-1]
            except ServerUnavailable:
                continue  # possibly a web page: the path is not part of the OpenAI API
        return None, []

    def _prompt_ids(self, ids: list[int], greedy: Choice) -> bool:
        def test() -> bool:
            by_ids = self._greedy(prompt=ids, max_tokens=1).entries
            return bool(by_ids) and by_ids[0].token.id >= 0 and same_prediction(by_ids[0], greedy.entries[0])

        return bool(ids) and self._passes(test)

    def _prompt_lists(self, greedy: Choice) -> bool:
        def test() -> bool:
            choices = self._complete([SECOND_PROMPT, self._prompt], max_tokens=1, temperature=0).choices
            entries = choices[1].entries if len(choices) == 2 else ()
            return bool(entries) and same_prediction(entries[0], greedy.entries[0])

        return self._passes(test)

    def _echo(self, zero: bool, lists: bool, top: int) -> bool:
        """Return whether an echo's last tokens have the log-probabilities that they have as next tokens."""

        def test() -> bool:
            echoed = self._complete(echo=True, max_tokens=0 if zero else 1).choices[0].entries
            echoed = echoed[: None if zero else -1]
            pieces = [entry.token.bytes for entry in echoed]
            if b"".join(pieces).decode() != self._prompt:
                return False
            compared = range(max(1, len(echoed) - COMPARED_ECHO_TOKENS), len(echoed))
            prefixes = [b"".join(pieces[:i]).decode() for i in compared]
            following = self._following(prefixes, lists, top)
            return echo_is_correct(zip((echoed[i] for i in compared), following, strict=False))

        return self._passes(test)

    def _following(self, texts: list[str], lists: bool, top: int) -> Iterator[Sequence[ScoredToken]]:
        """Yield the next tokens of each text."""
        for prompt in [texts] if lists else texts:
            choices = self._complete(prompt, max_tokens=1, top=top).choices
            for choice in choices[: len(texts) if lists else 1]:
                yield choice.entries[0].alternatives

    def _grammar(self, names: Sequence[GrammarField]) -> GrammarField | None:
        for name in names:
            field = grammar_field(name, LITERAL_GRAMMARS[name == "custom_tool"])
            if self._passes(lambda field=field: self._greedy(**field).text == LITERAL):  # type: ignore[misc]
                return name
        return None

    def _continuation(self, greedy: Choice) -> Continuation | None:
        """Return how the server continues an assistant message; None also if the test is inconclusive."""
        first = greedy.entries[0].token.bytes
        text, rest = spelling(greedy.entries), spelling(greedy.entries[1:])
        if not rest.strip() or not is_text(first) or text.startswith(rest):  # one token, or a repetition
            return None
        for name, (message_fields, body_fields) in CONTINUATION_FIELDS.items():
            user = {"role": "user", "content": self._prompt}
            messages = [user, {"role": "assistant", "content": first.decode(), **message_fields}]

            def test(messages: list[Any] = messages, body_fields: dict[str, Any] = body_fields) -> bool:
                expected = greedy.entries[1:]
                found = self._greedy(prompt=messages, max_tokens=len(expected), **body_fields).entries
                errors = [abs(one.logprob - other.logprob) for one, other in zip(found, expected, strict=False)]
                return spelling(found) == rest and fmean(errors) < NOISE

            if self._passes(test):
                return name
        return None

    def _end_ids(self) -> tuple[int, ...]:
        """Return the ids of the known end tokens that are in the server's vocabulary."""
        text = "".join(END_TOKENS)
        body = {"content": text, "add_special": False, "parse_special": True, "with_pieces": True}
        found: set[int] = set()

        def test() -> bool:
            found.update(token.id for token in self._tokenize(body, parse_tokens) if token.bytes in END_BYTES)
            return True

        self._passes(test)
        return tuple(sorted(found))

    def _tokenize(self, body: Mapping[str, Any], parse: Callable[[Any], list[T]]) -> list[T]:
        return self._client.post("/tokenize", body, parse, max_attempts=self._max_attempts).content
