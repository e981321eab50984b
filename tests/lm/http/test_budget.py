"""What may be spent is never exceeded, what is cached costs nothing, and an unknown price is not zero."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import BudgetExceeded, ServerUnavailable, UsageError
from fewparse.lm.http.batching import Ask, taken
from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.client import RetryPolicy
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.http.wire import Choice, Entry, Reply
from fewparse.lm.model import Sampling, Token
from fewparse.lm.prices import Price, price_of
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from support.remote_models import abilities_of, bodies, model_at, toy_model
from support.server_behaviours import HONEST, Manners
from support.toy_server import ToyServer

OPENAI = "https://api.openai.com/v1"
EXACT = Manners(tokenize="llama.cpp", logprob_format="content", models_tell="meta")
"""A server that tells how many tokens a prompt has."""
TEN = Sampling(n=2, temperature=1.0, max_tokens=10, seed=1, alternatives=3)


def priced() -> Price:
    price = price_of("gpt-4o", OPENAI)
    assert price is not None
    return price


def asked(number: int) -> Prompt:
    return Prompt((Part(f"prompt number {number}", False),))


def attempt(budget: Budget, most: tuple[int, int], spent: tuple[int, int, int]) -> bool:
    try:
        with budget.spending(*most) as spending:
            spending.reserve()
            spending.spent = spent
    except BudgetExceeded:
        return False
    return True


@settings(max_examples=50)
@given(
    st.integers(1, 500),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1)), min_size=1, max_size=40),
)
def test_requests_one_by_one_never_take_more_than_allowed(
    most: int, requests: list[tuple[int, int, float]]
) -> None:
    budget = Budget(BudgetLimits(tokens=most), None)
    total = 0
    for prompt, completion, share in requests:
        used = int(completion * share)
        fits = total + prompt + completion <= most
        assert attempt(budget, (prompt, completion), (prompt, 0, used)) is fits
        total += (prompt + used) if fits else 0
    assert total <= most


@pytest.mark.parametrize("in_dollars", [False, True])
def test_many_threads_together_never_take_more_than_allowed(in_dollars: bool) -> None:
    price = priced()
    each = price.cost(90, 0, 10)
    limits = BudgetLimits(dollars=each * 10.5) if in_dollars else BudgetLimits(tokens=1_050)
    budget = Budget(limits, price)
    under_way, most_under_way, lock = 0, 0, threading.Lock()
    barrier = threading.Barrier(8)

    def work(_: int) -> int:
        nonlocal under_way, most_under_way
        barrier.wait(10)
        done = 0
        for _ in range(50):
            try:
                with budget.spending(90, 10) as spending:
                    spending.reserve()
                    with lock:
                        under_way += 1
                        most_under_way = max(most_under_way, under_way)
                    spending.spent = 90, 0, 10
                    with lock:
                        under_way -= 1
            except BudgetExceeded:
                continue
            done += 1
        return done

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns in the middle of everything
    try:
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, range(8))) == 10
    finally:
        sys.setswitchinterval(usual)
    assert most_under_way <= 10


def test_nothing_is_left_for_others_while_a_request_is_settled() -> None:
    admitted: list[bool] = []

    class Slow(Price):
        """Looks up what was taken so slowly that another request comes in between."""

        def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
            if completion_tokens == 9:
                admitted.append(attempt(budget, (90, 10), (90, 0, 10)))
            return 0.0

    budget = Budget(BudgetLimits(tokens=100), Slow("m", OPENAI))
    assert attempt(budget, (90, 10), (90, 0, 9))
    assert admitted == [False]


def test_what_is_under_way_counts_in_full_and_what_was_not_taken_is_given_back() -> None:
    budget = Budget(BudgetLimits(tokens=100), None)
    with budget.spending(40, 30) as first:
        first.reserve()
        assert not attempt(budget, (20, 11), (0, 0, 0)), "70 are set aside"
        first.spent = 40, 0, 5
    assert attempt(budget, (20, 35), (20, 0, 35)), "45 were taken"
    assert not attempt(budget, (1, 0), (1, 0, 0))


def test_a_request_that_fails_or_is_never_sent_takes_nothing() -> None:
    budget = Budget(BudgetLimits(tokens=100), None)
    with suppress(ZeroDivisionError), budget.spending(50, 50) as spending:
        spending.reserve()
        raise ZeroDivisionError
    with budget.spending(500, 500):
        pass
    assert attempt(budget, (50, 50), (50, 0, 50))


def test_a_server_that_takes_more_than_it_was_asked_to_uses_the_budget_up() -> None:
    budget = Budget(BudgetLimits(tokens=100), None)
    assert attempt(budget, (10, 10), (100, 0, 10))
    assert not attempt(budget, (0, 0), (0, 0, 0)) or not attempt(budget, (1, 0), (1, 0, 0))


def test_the_refusal_tells_what_was_spent_what_is_asked_for_and_how_to_allow_more() -> None:
    budget = Budget(BudgetLimits(tokens=100), None)
    attempt(budget, (60, 0), (60, 0, 0))
    with (
        pytest.raises(BudgetExceeded, match=r"60 of 100 tokens .* may take 50 more") as caught,
        budget.spending(50, 0) as spending,
    ):
        spending.reserve()
    assert "--max-tokens-total" in str(caught.value.hint)
    dear = Budget(BudgetLimits(dollars=0.001), priced())
    with (
        pytest.raises(BudgetExceeded, match=r"\$0\.0000 of \$0\.0010") as caught,
        dear.spending(10_000, 0) as spending,
    ):
        spending.reserve()
    assert "--max-cost" in str(caught.value.hint)


def test_a_limit_in_dollars_needs_a_known_price() -> None:
    with pytest.raises(UsageError, match="price of this model is unknown") as caught:
        Budget(BudgetLimits(dollars=1.0), None)
    assert "--max-tokens-total" in str(caught.value.hint)
    Budget(BudgetLimits(tokens=1), None)


def test_the_price_of_unknown_models_is_unknown_and_never_zero() -> None:
    assert Budget(BudgetLimits(), None).cost(10, 0, 10) is None
    assert Budget(BudgetLimits(), priced()).cost(1_000_000, 0, 0) == pytest.approx(2.5)
    assert Budget(BudgetLimits(), priced()).cost(1_000_000, 1_000_000, 0) == pytest.approx(1.25)


# With a real model


def test_the_usage_of_a_model_without_a_price_has_no_cost() -> None:
    with toy_model() as (model, _):
        usage = Usage()
        model.sample(asked(0), [()], TEN, usage)
    assert usage.cost is None
    assert usage.requests == 1


def test_the_usage_of_a_model_with_a_price_costs_what_the_server_counted() -> None:
    price = priced()
    with toy_model(EXACT, budget=Budget(BudgetLimits(), price)) as (model, _):
        usage = Usage()
        model.next_tokens(asked(0), [()], 3, b"\n", usage)
    assert usage.cost == pytest.approx(price.cost(usage.prompt_tokens, usage.cached_prompt_tokens, 1))
    assert usage.prompt_tokens == len(asked(0).text)


def test_cached_answers_cost_nothing_and_are_given_when_nothing_is_left(tmp_path: Path) -> None:
    with closing(ResponseCache(tmp_path / "answers.sqlite")) as cache, ToyServer(EXACT) as toy:
        capabilities = abilities_of(EXACT)
        paid, free = Usage(), Usage()
        with model_at(toy.url, capabilities, cache=cache) as model:
            first = model.sample(asked(0), [()], TEN, paid)
        sent = len(toy.requests)
        with model_at(toy.url, capabilities, Budget(BudgetLimits(tokens=1), None), cache) as model:
            assert model.sample(asked(0), [()], TEN, free) == first
            with pytest.raises(BudgetExceeded):
                model.sample(asked(1), [()], TEN, Usage())
        assert len(bodies(toy)) == sent + 1, "the tokens of the new prompt are asked for, and cost nothing"
    assert (paid.cost, free.cost) == (None, 0)
    assert (paid.cached_requests, free.cached_requests) == (0, free.requests)
    assert free.prompt_tokens == paid.prompt_tokens


class Counting(ToyServer):
    """Counts for itself what every answer took."""

    def __init__(self, manners: Manners) -> None:
        super().__init__(manners)
        self.taken: list[int] = []

    def _told(self, asked: object, chat: bool) -> dict[str, object]:
        told = super()._told(asked, chat)  # type: ignore[arg-type]
        self.taken.append(told["usage"]["total_tokens"])
        return told


@pytest.mark.parametrize("most", [150, 400])
def test_a_model_with_many_threads_never_takes_more_tokens_than_allowed(most: int) -> None:
    budget = Budget(BudgetLimits(tokens=most), None)
    with Counting(EXACT) as toy, model_at(toy.url, abilities_of(EXACT), budget) as model:

        def work(number: int) -> bool:
            try:
                model.sample(asked(number), [()], TEN, Usage())
            except BudgetExceeded:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(work, range(40)))
    assert any(done)
    assert not all(done)
    assert most / 2 < sum(toy.taken) <= most


def test_a_request_that_never_came_through_takes_nothing_from_the_budget() -> None:
    with ToyServer(EXACT) as toy:
        budget = Budget(BudgetLimits(tokens=60), None)
        capabilities = abilities_of(EXACT)
        prompts = [asked(i) for i in range(3)]

        def one(model: RemoteModel, prompt: Prompt) -> None:
            model.next_tokens(prompt, [()], 1, b"\n", Usage())

        gone = "http://127.0.0.1:9/v1"
        with (
            model_at(gone, capabilities, budget, patience=RetryPolicy(1, 1)) as model,
            pytest.raises(ServerUnavailable),
        ):
            one(model, prompts[0])
        with model_at(toy.url, capabilities, budget) as model:
            one(model, prompts[1])
            one(model, prompts[2])


def reply(entries: int, choices: int = 1, **told: int | None) -> Reply:
    entry = Entry(Token(b"a"), -1.0, ())
    numbers = {"prompt_tokens": None, "completion_tokens": None, "cached_tokens": 0, **told}
    return Reply(tuple(Choice("a" * entries, (entry,) * entries, "stop") for _ in range(choices)), **numbers)  # type: ignore[arg-type]


def test_what_a_server_does_not_count_or_only_in_part_is_counted_for_it() -> None:
    ask = Ask({}, 3, 50, 30)
    assert taken(ask, reply(4, 3)) == (50, 0, 12)
    assert taken(ask, reply(4, 3, prompt_tokens=40, completion_tokens=4)) == (40, 0, 12)
    assert taken(ask, reply(4, 3, prompt_tokens=40, completion_tokens=15, cached_tokens=99)) == (40, 40, 15)


@pytest.mark.parametrize("manners", [Manners(usage_told=False), Manners(usage_of_first=True), HONEST])
def test_tokens_are_counted_whatever_the_server_tells(manners: Manners) -> None:
    with toy_model(manners) as (model, _):
        usage = Usage()
        groups = model.sample(asked(0), [()], TEN, usage)
    said = sum(len(completion.tokens) for completion in groups[0])
    assert said <= usage.completion_tokens <= said + TEN.n
    assert usage.prompt_tokens > 0
