"""Budget limits are never exceeded, cached responses cost nothing, and an unknown price is not zero."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import BudgetExceeded, ServerUnavailable, UsageError
from fewparse.lm.http.batching import Request, token_counts
from fewparse.lm.http.budget import Budget, BudgetLimits, Price, price_of
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.http.wire import Choice, Entry, Reply
from fewparse.lm.model import Sampling, Token
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.retry import RetryPolicy
from support.prompts import plain_prompt
from support.remote_models import capabilities_of, model_at, request_bodies, toy_model
from support.server_behaviours import COMPLIANT, Behaviour
from support.toy_responses import CompletionRequest
from support.toy_server import ToyServer

OPENAI = "https://api.openai.com/v1"
EXACT = Behaviour(tokenize="llama.cpp", logprob_format="content", models_report="meta")
"""A server with a tokenizer."""
TEN = Sampling(n=2, temperature=1.0, max_tokens=10, seed=1, alternatives=3)


def priced() -> Price:
    price = price_of("gpt-4o", OPENAI)
    assert price is not None
    return price


def prompt_of(number: int) -> Prompt:
    return plain_prompt(f"prompt number {number}")


def attempt(budget: Budget, maximum: tuple[int, int], used: tuple[int, int, int]) -> bool:
    try:
        with budget.reservation(*maximum) as reservation:
            reservation.reserve()
            reservation.used = used
    except BudgetExceeded:
        return False
    return True


@settings(max_examples=50)
@given(
    st.integers(1, 500),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1)), min_size=1, max_size=40),
)
def test_sequential_requests_never_exceed_the_limit(limit: int, requests: list[tuple[int, int, float]]) -> None:
    budget = Budget(BudgetLimits(max_tokens_total=limit), None)
    total = 0
    for prompt, completion, share in requests:
        used = int(completion * share)
        fits = total + prompt + completion <= limit
        assert attempt(budget, (prompt, completion), (prompt, 0, used)) is fits
        total += (prompt + used) if fits else 0
    assert total <= limit


@pytest.mark.parametrize("in_dollars", [False, True])
def test_concurrent_requests_never_exceed_the_limit(in_dollars: bool) -> None:
    price = priced()
    each = price.cost(90, 0, 10)
    limits = BudgetLimits(max_cost=each * 10.5) if in_dollars else BudgetLimits(max_tokens_total=1_050)
    budget = Budget(limits, price)
    in_progress, max_in_progress, lock = 0, 0, threading.Lock()
    barrier = threading.Barrier(8)

    def work(_: int) -> int:
        nonlocal in_progress, max_in_progress
        barrier.wait(60)
        done = 0
        for _ in range(50):
            try:
                with budget.reservation(90, 10) as reservation:
                    reservation.reserve()
                    with lock:
                        in_progress += 1
                        max_in_progress = max(max_in_progress, in_progress)
                    reservation.used = 90, 0, 10
                    with lock:
                        in_progress -= 1
            except BudgetExceeded:
                continue
            done += 1
        return done

    default = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # force frequent thread switches
    try:
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, range(8))) == 10
    finally:
        sys.setswitchinterval(default)
    assert max_in_progress <= 10


def test_a_reservation_is_replaced_by_the_used_tokens_in_one_update() -> None:
    admitted: list[bool] = []

    class Slow(Price):
        """Makes another request while the used tokens are being priced."""

        def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
            if completion_tokens == 9:
                admitted.append(attempt(budget, (90, 10), (90, 0, 10)))
            return 0.0

    budget = Budget(BudgetLimits(max_tokens_total=100), Slow("m", OPENAI))
    assert attempt(budget, (90, 10), (90, 0, 9))
    assert admitted == [False]


def test_reserved_tokens_count_and_unused_ones_are_released() -> None:
    budget = Budget(BudgetLimits(max_tokens_total=100), None)
    with budget.reservation(40, 30) as first:
        first.reserve()
        assert not attempt(budget, (20, 11), (0, 0, 0)), "70 are reserved"
        first.used = 40, 0, 5
    assert attempt(budget, (20, 35), (20, 0, 35)), "45 were used"
    assert not attempt(budget, (1, 0), (1, 0, 0))


def test_failed_and_unsent_requests_use_nothing() -> None:
    budget = Budget(BudgetLimits(max_tokens_total=100), None)
    with suppress(ZeroDivisionError), budget.reservation(50, 50) as reservation:
        reservation.reserve()
        raise ZeroDivisionError
    with budget.reservation(500, 500):
        pass
    assert attempt(budget, (50, 50), (50, 0, 50))


def test_usage_beyond_the_reservation_counts() -> None:
    budget = Budget(BudgetLimits(max_tokens_total=100), None)
    assert attempt(budget, (10, 10), (100, 0, 10))
    assert not attempt(budget, (0, 0), (0, 0, 0)) or not attempt(budget, (1, 0), (1, 0, 0))


def test_the_error_states_what_is_spent_what_is_needed_and_the_option() -> None:
    budget = Budget(BudgetLimits(max_tokens_total=100), None)
    attempt(budget, (60, 0), (60, 0, 0))
    with (
        pytest.raises(BudgetExceeded, match=r"60 of 100 tokens .* may need 50 more") as caught,
        budget.reservation(50, 0) as reservation,
    ):
        reservation.reserve()
    assert "--max-tokens-total" in str(caught.value.hint)
    dear = Budget(BudgetLimits(max_cost=0.001), priced())
    with (
        pytest.raises(BudgetExceeded, match=r"\$0\.0000 of \$0\.0010") as caught,
        dear.reservation(10_000, 0) as reservation,
    ):
        reservation.reserve()
    assert "--max-cost" in str(caught.value.hint)


def test_a_cost_limit_needs_a_known_price() -> None:
    with pytest.raises(UsageError, match="price of this model is unknown") as caught:
        Budget(BudgetLimits(max_cost=1.0), None)
    assert "--max-tokens-total" in str(caught.value.hint)
    Budget(BudgetLimits(max_tokens_total=1), None)


def test_an_unknown_price_is_none_not_zero() -> None:
    assert Budget(BudgetLimits(), None).cost(10, 0, 10) is None
    assert Budget(BudgetLimits(), priced()).cost(1_000_000, 0, 0) == pytest.approx(2.5)
    assert Budget(BudgetLimits(), priced()).cost(1_000_000, 1_000_000, 0) == pytest.approx(1.25)


# With a remote model


def test_usage_without_a_price_has_no_cost() -> None:
    with toy_model() as (model, _):
        usage = Usage()
        model.sample(prompt_of(0), [()], TEN, usage)
    assert usage.cost is None
    assert usage.requests == 1


def test_usage_with_a_price_costs_the_tokens_reported_by_the_server() -> None:
    price = priced()
    with toy_model(EXACT, budget=Budget(BudgetLimits(), price)) as (model, _):
        usage = Usage()
        model.next_tokens(prompt_of(0), [()], 3, b"\n", usage)
    assert usage.cost == pytest.approx(price.cost(usage.prompt_tokens, usage.cached_prompt_tokens, 1))
    assert usage.prompt_tokens == len(prompt_of(0).text)


def test_cached_responses_cost_nothing_and_are_used_when_the_budget_is_spent(tmp_path: Path) -> None:
    with closing(ResponseCache(tmp_path / "answers.sqlite")) as cache, ToyServer(EXACT) as toy:
        capabilities = capabilities_of(EXACT)
        paid, free = Usage(), Usage()
        with model_at(toy.url, capabilities, cache=cache) as model:
            first = model.sample(prompt_of(0), [()], TEN, paid)
        sent = len(toy.requests)
        with model_at(toy.url, capabilities, Budget(BudgetLimits(max_tokens_total=1), None), cache) as model:
            assert model.sample(prompt_of(0), [()], TEN, free) == first
            with pytest.raises(BudgetExceeded):
                model.sample(prompt_of(1), [()], TEN, Usage())
        assert len(request_bodies(toy)) == sent + 1, "the new prompt is tokenized, at no cost"
    assert (paid.cost, free.cost) == (None, 0)
    assert (paid.cached_requests, free.cached_requests) == (0, free.requests)
    assert free.prompt_tokens == paid.prompt_tokens


class CountingServer(ToyServer):
    """Records the tokens of each response."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self.used: list[int] = []

    def _response(self, request: CompletionRequest, chat: bool) -> dict[str, Any]:
        response = super()._response(request, chat)
        self.used.append(response["usage"]["total_tokens"])
        return response


@pytest.mark.parametrize("limit", [150, 400])
def test_a_model_used_by_many_threads_never_exceeds_the_limit(limit: int) -> None:
    budget = Budget(BudgetLimits(max_tokens_total=limit), None)
    with CountingServer(EXACT) as toy, model_at(toy.url, capabilities_of(EXACT), budget) as model:

        def work(number: int) -> bool:
            try:
                model.sample(prompt_of(number), [()], TEN, Usage())
            except BudgetExceeded:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(work, range(40)))
    assert any(done)
    assert not all(done)
    assert limit / 2 < sum(toy.used) <= limit


def test_a_request_without_a_response_uses_no_budget() -> None:
    with ToyServer(EXACT) as toy:
        budget = Budget(BudgetLimits(max_tokens_total=60), None)
        capabilities = capabilities_of(EXACT)
        prompts = [prompt_of(i) for i in range(3)]

        def one(model: RemoteModel, prompt: Prompt) -> None:
            model.next_tokens(prompt, [()], 1, b"\n", Usage())

        gone = "http://127.0.0.1:9/v1"
        with (
            model_at(gone, capabilities, budget, retry=RetryPolicy(1, 1)) as model,
            pytest.raises(ServerUnavailable),
        ):
            one(model, prompts[0])
        with model_at(toy.url, capabilities, budget) as model:
            one(model, prompts[1])
            one(model, prompts[2])


def reply(entries: int, choices: int = 1, **counts: int | None) -> Reply:
    entry = Entry(Token(b"a"), -1.0, ())
    numbers = {"prompt_tokens": None, "completion_tokens": None, "cached_tokens": 0, **counts}
    return Reply(tuple(Choice("a" * entries, (entry,) * entries, "stop") for _ in range(choices)), **numbers)  # type: ignore[arg-type]


def test_missing_or_partial_token_counts_are_completed() -> None:
    request = Request({}, 3, 50, 30)
    assert token_counts(request, reply(4, 3)) == (50, 0, 12)
    assert token_counts(request, reply(4, 3, prompt_tokens=40, completion_tokens=4)) == (40, 0, 12)
    assert token_counts(request, reply(4, 3, prompt_tokens=40, completion_tokens=15, cached_tokens=99)) == (
        40,
        40,
        15,
    )


@pytest.mark.parametrize(
    "behaviour", [Behaviour(reports_usage=False), Behaviour(usage_of_first_choice=True), COMPLIANT]
)
def test_tokens_are_counted_whatever_the_server_reports(behaviour: Behaviour) -> None:
    with toy_model(behaviour) as (model, _):
        usage = Usage()
        groups = model.sample(prompt_of(0), [()], TEN, usage)
    generated = sum(len(completion.tokens) for completion in groups[0])
    assert generated <= usage.completion_tokens <= generated + TEN.n
    assert usage.prompt_tokens > 0
