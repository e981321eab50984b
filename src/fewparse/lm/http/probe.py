"""Ask a server a few small questions, to learn what it really does: its word alone is no contract."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any, Literal

from fewparse.errors import ServerError, ServerRefused, ServerUnavailable, ServerUnfit
from fewparse.lm.http.capabilities import NO_CUT_OFFS, Capabilities, Continuation, Grammars, Stop
from fewparse.lm.http.client import Server
from fewparse.lm.http.hearing import NOISE, alike, facts, joined, stop_within, vocabulary
from fewparse.lm.http.responses import END_MARKS
from fewparse.lm.http.wire import CONTENT, LEGACY, Choice, Reply, read_reply
from fewparse.lm.model import ScoredToken
from fewparse.vocabulary import is_text

PROMPTS = (
    "One, two, three, four, five, six,",
    "Once upon a time",
    "a b c d e f g",
    "The days of the week are",
    "x y z",
)
"""The first of these that the model has something to say to is what it is asked about."""
ANOTHER_PROMPT = "The sun is"
LENGTH = 8
"""How many tokens it is asked to say."""
WIDTHS = (2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
TOPS = (1, 5, 10, 20, 50, 100, 1000)
CHAT_TOPS = (1, 5, 10, 20, 100)
MOST_LOOKED_AT = 1000
ECHOES_COMPARED, SEEDS = 6, 5
LITERAL = "zq!"
TRIES = 5
"""How often to ask where an error of the server's may mean that it cannot do what it is asked."""
ELSEWHERE = (
    "Use a server that gives them (llama.cpp, vLLM, SGLang and OpenAI's completions do), or a model in this "
    "process: --model embedded, gguf:PATH or hf:NAME."
)


class Probe:
    """The questions, of one endpoint."""

    def __init__(self, server: Server, model: str, chat: bool) -> None:
        self._server = server
        self._model = model
        self._chat = chat
        self._tries: int | None = None
        self._plain: dict[str, Any] = {}
        self._prompt = PROMPTS[0]

    def run(self) -> Capabilities:
        """All questions, in the order in which answers build on each other."""
        props = self._facts("/props")
        listed = next((m for m in self._models() if m.get("id") == self._model), {})
        meta = facts(listed.get("meta"))
        logprobs, said = self._first_words()
        size = meta.get("n_vocab") or 0
        usual = self._most_alternatives(size)
        tokenize, ids = self._tokenizer()
        n = self._most_samples()
        zero = not self._chat and self._zero_tokens()
        lists = not self._chat and self._takes_lists(said)
        settings = facts(props.get("default_generation_settings"))
        return Capabilities(
            chat=self._chat,
            logprobs=logprobs,
            top=len(usual),
            plain_sampling=bool(self._plain),
            n=n,
            distinct=n > 1 and self._samples_differ(min(n, 5)),
            seed=self._seed_holds(),
            stop=self._stop(said),
            untempered=self._untempered(usual),
            ids=not self._chat and self._takes_ids(ids, said),
            lists=lists,
            echo=not self._chat and self._echoes(zero, lists, min(len(usual), MOST_LOOKED_AT)),
            max_tokens_zero=zero,
            tokenize=None if self._chat else tokenize,
            grammar=self._grammar(),
            continuation=self._continuation(said) if self._chat else None,
            slots=props.get("total_slots"),
            context=settings.get("n_ctx") or listed.get("max_model_len") or meta.get("n_ctx"),
            end_ids=self._end_ids() if tokenize == "llama.cpp" else (),
            tokens=None if self._chat else vocabulary(usual, size),
        )

    def _ask(self, prompt: Any = None, read: Callable[[Any], Reply] = read_reply, **chosen: Any) -> Reply:
        body: dict[str, Any] = {"model": self._model, "max_tokens": 3, "temperature": 1, "top_p": 1, "seed": 1}
        body |= self._plain
        asked = self._prompt if prompt is None else prompt
        top = chosen.pop("top", 1)
        if self._chat:
            body |= {"messages": asked if isinstance(asked, list) else [{"role": "user", "content": asked}]}
            body |= {"logprobs": True, "top_logprobs": top}
        else:
            body |= {"prompt": asked, "logprobs": top}
        path = "/v1/chat/completions" if self._chat else "/v1/completions"
        reply: Reply = self._server.ask(path, body | chosen, read, tries=self._tries).content
        return reply

    def _works(self, question: Callable[[], bool]) -> bool:
        """Whether the server takes a question at all and answers as it should.

        Some servers fail (status 500) where others refuse; but one that is only busy is waited for.
        """
        self._tries = TRIES
        try:
            return question()
        except (ServerRefused, ServerUnfit, IndexError):  # the last where an answer lacks choices or entries
            return False
        except ServerUnavailable as error:
            if "status 500" in error.message:
                return False
            self._tries = None
            return question()
        finally:
            self._tries = None

    def _models(self) -> Iterable[Mapping[str, Any]]:
        try:
            told = self._server.get("/v1/models").get("data")
        except ServerRefused:
            return []
        return [model for model in told if isinstance(model, dict)] if isinstance(told, list) else []

    def _facts(self, path: str) -> Mapping[str, Any]:
        """What a server tells of itself, if it does."""
        try:
            told = self._server.get(path)
        except ServerError:
            return {}
        return facts(told)

    def _first_words(self) -> tuple[str, Choice]:
        """The format of log-probabilities, legacy or chat style, and what the model says to a prompt.

        A prompt to which it says little, or nothing that it could be stopped at, tells little: another is tried.
        """
        first: list[tuple[str, Choice]] = []
        self._plain = NO_CUT_OFFS
        if not self._works(lambda: not first.append(self._words(PROMPTS[0]))):  # type: ignore[func-returns-value]
            self._plain = {}
        heard: list[tuple[int, bool, str, str, Choice]] = []
        for temperature, prompt in product((0, 1), PROMPTS):
            if temperature and any(words[0] for words in heard):
                break
            style, said = first.pop() if first else self._words(prompt, temperature)
            enough = len(said.entries), stop_within(said) is not None
            heard.append((*enough, prompt, style, said))
            if (said.text and not said.entries) or enough == (LENGTH, True):
                break
        length, _, self._prompt, style, said = max(heard, key=lambda words: words[:2])
        if not length:
            raise ServerUnfit(
                f"{self._server.url} gives no log-probabilities for {self._model}, though it was asked for them: "
                "outputs could not be ranked",
                ELSEWHERE,
            )
        return style, said

    def _words(self, prompt: str, temperature: int = 0) -> tuple[str, Choice]:
        styles: list[str] = []

        def read(answer: Any) -> Reply:
            reply = read_reply(answer)
            if not reply.choices:
                raise ServerUnfit(f"{self._server.url} answers with no choices at all", ELSEWHERE)
            told = facts(answer["choices"][0].get("logprobs"))
            styles.append(LEGACY if told.get("content") is None else CONTENT)
            return reply

        reply = self._ask(prompt, read, temperature=temperature, max_tokens=LENGTH)
        return styles[-1], reply.choices[0]

    def _most_alternatives(self, size: int) -> tuple[ScoredToken, ...]:
        """As many next tokens as the server tells: the whole vocabulary of this size, if it does."""
        found: tuple[ScoredToken, ...] = ()

        def told(wanted: int) -> bool:
            nonlocal found
            alternatives = self._next_tokens(wanted)[:wanted]
            found = max(found, alternatives, key=len)
            return len(alternatives) >= min(wanted, 2)

        tops = CHAT_TOPS if self._chat else TOPS
        if self._chat or not size or not self._works(lambda: told(size)):
            self._largest(tops, told)
        if not found:
            raise ServerUnfit(f"{self._server.url} tells no alternatives to the tokens it samples", ELSEWHERE)
        return found

    def _next_tokens(self, top: int, temperature: int = 1) -> tuple[ScoredToken, ...]:
        """What may come next. Behind a sampled end some servers hide it: another sample is asked for then."""
        for seed in range(SEEDS):
            asked = self._ask(max_tokens=1, top=top, temperature=temperature, seed=seed)
            if asked.choices and asked.choices[0].entries:
                return asked.choices[0].entries[0].alternatives
        return ()

    def _most_samples(self) -> int:
        return self._largest(WIDTHS, lambda n: len(self._ask(max_tokens=1, n=n).choices) == n) or 1

    def _largest(self, numbers: Sequence[int], question: Callable[[int], bool]) -> int | None:
        """The largest of these numbers with which the server answers as it should; None if none is."""
        if self._works(lambda: question(numbers[-1])):
            return numbers[-1]
        fitting, low, high = None, 0, len(numbers) - 1
        while low < high:
            middle = (low + high) // 2
            if self._works(lambda middle=middle: question(numbers[middle])):  # type: ignore[misc]
                fitting, low = numbers[middle], middle + 1
            else:
                high = middle
        return fitting

    def _samples_differ(self, n: int) -> bool:
        reply = self._ask(n=n, max_tokens=12, temperature=1.5)
        return len({choice.text for choice in reply.choices}) > 1

    def _seed_holds(self) -> bool:
        """Asked three times: a first answer may differ from later ones because the prompt was not read yet."""
        texts = [self._ask(max_tokens=12, temperature=1.5, seed=7).choices[0].text for _ in range(3)]
        return texts[1] == texts[2]

    def _greedy(self, **chosen: Any) -> Choice:
        return self._ask(temperature=0, **{"max_tokens": LENGTH, **chosen}).choices[0]

    def _stop(self, said: Choice) -> Stop:
        """Stop at a word of what the server says anyway; where there is none, the worse is assumed."""
        stop = stop_within(said)
        if stop is None:
            return "hidden"
        stopped = self._greedy(stop=[stop])
        if stop in stopped.text:
            return "ignored"
        shown = any(stop.encode() in entry.token.bytes for entry in stopped.entries)
        return "shown" if shown else "hidden"

    def _untempered(self, usual: Sequence[ScoredToken]) -> bool:
        """Whether log-probabilities are those of temperature 1, also far from the best tokens."""
        top = min(len(usual), max(CHAT_TOPS))
        hot, known = dict(self._next_tokens(top, temperature=2)), dict(usual)
        return all(abs(known[token] - hot[token]) < NOISE for token in known.keys() & hot.keys())

    def _tokenizer(self) -> tuple[Literal["llama.cpp", "vllm"] | None, list[int]]:
        """Whose dialect the server's tokenizer speaks, and the ids of the prompt."""
        dialects: dict[Literal["llama.cpp", "vllm"], dict[str, Any]] = {
            "llama.cpp": {"content": self._prompt},
            "vllm": {"model": self._model, "prompt": self._prompt},
        }
        for dialect, body in dialects.items():
            found: list[Any] = []

            def question(body: Mapping[str, Any] = body, found: list[Any] = found) -> bool:
                told = self._server.ask("/tokenize", body, lambda answer: answer.get("tokens"), tries=self._tries)
                found.append(told.content)
                return isinstance(told.content, list) and len(told.content) > 0

            try:
                if self._works(question):
                    return dialect, found[-1]
            except ServerUnavailable:
                continue  # a page, perhaps: the address stands outside of what the server promises
        return None, []

    def _takes_ids(self, ids: list[int], said: Choice) -> bool:
        def question() -> bool:
            by_ids = self._greedy(prompt=ids, max_tokens=1).entries
            return bool(by_ids) and by_ids[0].token.id >= 0 and alike(by_ids[0], said.entries[0])

        return bool(ids) and self._works(question)

    def _takes_lists(self, said: Choice) -> bool:
        def question() -> bool:
            choices = self._ask([ANOTHER_PROMPT, self._prompt], max_tokens=1, temperature=0).choices
            return len(choices) == 2 and bool(choices[1].entries) and alike(choices[1].entries[0], said.entries[0])

        return self._works(question)

    def _echoes(self, zero: bool, lists: bool, top: int) -> bool:
        """Whether a text is scored rightly: its last tokens as likely as each is where it would come next.

        Where too few tokens are told to see that of at least two, the worse is assumed.
        """

        def question() -> bool:
            told = self._ask(echo=True, max_tokens=0 if zero else 1).choices[0].entries
            told = told[: None if zero else -1]
            pieces = [entry.token.bytes for entry in told]
            if b"".join(pieces).decode() != self._prompt:
                return False
            compared = range(max(1, len(told) - ECHOES_COMPARED), len(told))
            befores = [b"".join(pieces[:i]).decode() for i in compared]
            listed = 0
            for i, nexts in zip(compared, self._nexts(befores, lists, top), strict=False):
                score = next((s.logprob for s in nexts if s.token.bytes == pieces[i]), None)
                listed += score is not None
                too_likely = score is None and told[i].logprob > nexts[-1].logprob + NOISE
                if too_likely or (score is not None and abs(score - told[i].logprob) > NOISE):
                    return False
            return listed > 1

        return self._works(question)

    def _nexts(self, texts: list[str], lists: bool, top: int) -> Iterator[Sequence[ScoredToken]]:
        """What may come next after each text."""
        for prompt in [texts] if lists else texts:
            choices = self._ask(prompt, max_tokens=1, top=top).choices
            for choice in choices[: len(texts) if lists else 1]:
                yield choice.entries[0].alternatives

    def _zero_tokens(self) -> bool:
        return self._works(lambda: not self._ask(max_tokens=0).choices[0].text)

    def _grammar(self) -> Grammars | None:
        rules = f'root ::= "{LITERAL}"'
        ways: dict[Grammars, dict[str, Any]] = {
            "gbnf": {"grammar": rules},
            "structured_outputs": {"structured_outputs": {"grammar": rules}},
            "guided_grammar": {"guided_grammar": rules},
        }
        for name, way in ways.items():
            if self._works(lambda way=way: self._greedy(**way).text == LITERAL):  # type: ignore[misc]
                return name
        return None

    def _continuation(self, said: Choice) -> Continuation | None:
        """Whether the rest of an answer is said, as likely, where its beginning is given.

        None also where one cannot tell: an answer of one word, or one that repeats itself.
        """
        user = {"role": "user", "content": self._prompt}
        begin = said.entries[0].token.bytes
        whole, rest = joined(said.entries), joined(said.entries[1:])
        if not rest.strip() or not is_text(begin) or whole.startswith(rest):
            return None
        ways: dict[Continuation, tuple[dict[str, Any], dict[str, Any]]] = {
            "plain": ({}, {}),
            "continue_final_message": ({}, {"continue_final_message": True, "add_generation_prompt": False}),
            "prefix": ({"prefix": True}, {}),
        }
        for name, (in_message, in_body) in ways.items():
            messages = [user, {"role": "assistant", "content": begin.decode(), **in_message}]

            def question(messages: list[Any] = messages, in_body: dict[str, Any] = in_body) -> bool:
                on = self._greedy(prompt=messages, max_tokens=len(said.entries) - 1, **in_body).entries
                off = [abs(one.logprob - other.logprob) for one, other in zip(on, said.entries[1:], strict=False)]
                return joined(on) == rest and fmean(off) < NOISE

            if self._works(question):
                return name
        return None

    def _end_ids(self) -> tuple[int, ...]:
        """The ids of the tokens with which models end, of those that the server's tokenizer knows."""
        body = {"content": "".join(END_MARKS), "add_special": False, "parse_special": True, "with_pieces": True}
        told = self._server.ask("/tokenize", body, lambda answer: answer["tokens"]).content
        return tuple(sorted({t["id"] for t in told if isinstance(t, dict) and t.get("piece") in END_MARKS}))


def probe(server: Server, model: str, chat: bool = False) -> Capabilities:
    """What a server does for a model."""
    return Probe(server, model, chat).run()
