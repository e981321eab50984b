"""Probe a server: test with a few small requests what it supports, instead of relying on its documentation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any, TypeVar

from fewparse.errors import ServerRejected, ServerUnavailable, ServerUnsupported
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
from fewparse.lm.http.reported import read_reported
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
COMPLETION_TOKENS = 8
SAMPLE_COUNTS = (2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
TOP_LOGPROBS = (1, 5, 10, 20, 50, 100, 1000)
CHAT_TOP_LOGPROBS = (1, 5, 10, 20, 100)
MAX_COMPARED_LOGPROBS = 1000
COMPARED_ECHO_TOKENS, SEEDS = 6, 5
LITERAL = "zq!"
MAX_ATTEMPTS = 5
"""Attempts where an error response may mean that the tested feature is not supported."""
USE_ANOTHER = (
    "Use a server that returns them (llama.cpp, vLLM, SGLang and OpenAI's completions do), or a model in this "
    "process: --model embedded, gguf:PATH or hf:NAME."
)


def probe(client: HttpClient, model: str, chat: bool = False) -> Capabilities:
    """Return what a server supports for a model; raise ServerUnsupported if search cannot use it."""
    return Probe(client, model, chat).run()


class Probe:
    """The tests of one endpoint."""

    def __init__(self, client: HttpClient, model: str, chat: bool) -> None:
        self._client = client
        self._model = model
        self._chat = chat
        self._max_attempts: int | None = None
        self._cutoffs: dict[str, Any] = {}
        self._prompt = PROMPTS[0]

    def run(self) -> Capabilities:
        """Run all tests; later ones use the results of earlier ones."""
        reported = read_reported(self._client, self._model)
        style, greedy = self._choose_prompt()
        vocabulary_size = reported.vocabulary_size or 0
        alternatives = self._most_alternatives(vocabulary_size)
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
            grammar=self._grammar(),
            continuation=self._continuation(greedy) if self._chat else None,
            slots=reported.slots,
            context_length=reported.context_length,
            end_ids=end_ids,
            tokens=tokens if tokens is None or valid_end_ids(end_ids, tokens) else None,
            ignored=reported.ignored,
        )

    def _complete(self, prompt: Any = None, parse: Callable[[Any], Reply] = parse_reply, **fields: Any) -> Reply:
        """Request a completion of the test prompt, or of another one, with some fields changed."""
        body: dict[str, Any] = {"model": self._model, "max_tokens": 3, "temperature": 1, "top_p": 1, "seed": 1}
        body |= self._cutoffs
        prompt = self._prompt if prompt is None else prompt
        top = fields.pop("top", 1)
        if self._chat:
            body |= {"messages": prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]}
            body |= {"logprobs": True, "top_logprobs": top}
        else:
            body |= {"prompt": prompt, "logprobs": top}
        path = "/v1/chat/completions" if self._chat else "/v1/completions"

        def parse_choices(payload: Any) -> Reply:
            reply = parse(payload)
            if not reply.choices:
                raise ServerUnsupported(f"{self._client.url} returns no choices", USE_ANOTHER)
            return reply

        return self._client.post(path, body | fields, parse_choices, max_attempts=self._max_attempts).content

    def _greedy(self, **fields: Any) -> Choice:
        return self._complete(temperature=0, **{"max_tokens": COMPLETION_TOKENS, **fields}).choices[0]

    def _passes(self, test: Callable[[], bool]) -> bool:
        """Return whether the server accepts the requests of a test and responds as expected.

        Some servers fail with status 500 on fields that others reject; a busy server is retried without limit.
        """
        self._max_attempts = MAX_ATTEMPTS
        try:
            return test()
        except (ServerRejected, ServerUnsupported, IndexError, UnicodeDecodeError):
            return False  # IndexError: no choices or no entries; UnicodeDecodeError: an echo that is not text
        except ServerUnavailable as error:
            if "status 500" in error.message:
                return False
            self._max_attempts = None
            return test()
        finally:
            self._max_attempts = None

    def _largest(self, numbers: Sequence[int], test: Callable[[int], bool]) -> int | None:
        """Return the largest of these numbers that passes the test, by binary search; None if none does."""
        if self._passes(lambda: test(numbers[-1])):
            return numbers[-1]
        passed, low, high = None, 0, len(numbers) - 1
        while low < high:
            middle = (low + high) // 2
            if self._passes(lambda middle=middle: test(numbers[middle])):  # type: ignore[misc]
                passed, low = numbers[middle], middle + 1
            else:
                high = middle
        return passed

    def _choose_prompt(self) -> tuple[LogprobsFormat, Choice]:
        """Choose the test prompt; return the format of log-probabilities and the greedy completion.

        A prompt with a short completion, or one without a stop candidate, is inconclusive: the next one is tried.
        """
        first: list[tuple[LogprobsFormat, Choice]] = []
        self._cutoffs = NO_CUTOFFS
        if not self._passes(lambda: not first.append(self._completion_of(PROMPTS[0]))):  # type: ignore[func-returns-value]
            self._cutoffs = {}
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
            raise ServerUnsupported(
                f"{self._client.url} returns no log-probabilities for {self._model}: outputs could not be ranked",
                USE_ANOTHER,
            )
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
        """Return as many next tokens as the server lists: the whole vocabulary if possible."""
        longest: tuple[ScoredToken, ...] = ()

        def lists_enough(top: int) -> bool:
            nonlocal longest
            alternatives = self._next_tokens(top)[:top]
            longest = max(longest, alternatives, key=len)
            return len(alternatives) >= min(top, 2)

        if self._chat or not vocabulary_size or not self._passes(lambda: lists_enough(vocabulary_size)):
            self._largest(CHAT_TOP_LOGPROBS if self._chat else TOP_LOGPROBS, lists_enough)
        if not longest:
            raise ServerUnsupported(f"{self._client.url} lists no alternatives to its samples", USE_ANOTHER)
        return longest

    def _next_tokens(self, top: int, temperature: int = 1) -> tuple[ScoredToken, ...]:
        """Return next tokens. Some servers list none if the end was sampled: another seed is tried then."""
        for seed in range(SEEDS):
            reply = self._complete(max_tokens=1, top=top, temperature=temperature, seed=seed)
            if reply.choices and reply.choices[0].entries:
                return reply.choices[0].entries[0].alternatives
        return ()

    def _max_n(self) -> int:
        return self._largest(SAMPLE_COUNTS, lambda n: len(self._complete(max_tokens=1, n=n).choices) == n) or 1

    def _distinct_samples(self, n: int) -> bool:
        reply = self._complete(n=n, max_tokens=12, temperature=1.5)
        return len({choice.text for choice in reply.choices}) > 1

    def _seed(self) -> bool:
        """Sample three times with one seed: the first may differ because the prompt was not in the KV cache."""
        texts = [self._complete(max_tokens=12, temperature=1.5, seed=7).choices[0].text for _ in range(3)]
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

    def _grammar(self) -> GrammarField | None:
        for name in GRAMMAR_FIELDS:
            field = grammar_field(name, f'root ::= "{LITERAL}"')
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
