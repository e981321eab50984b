"""What a fixed scenario costs, in counters that do not depend on the machine: none of them may grow.

The exact counters follow from the search. The others follow the model's probabilities, which differ in the last
digits between processors, so that a sample may differ: they may vary by a tenth. Whoever lowers a counter lowers
its number here.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from fewparse.constrain import cfg, configuration, engine
from fewparse.domains.load import load_domain
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.usage import Usage
from fewparse.options import NO_ADAPTER, ParserOptions
from fewparse.parser import Parser
from fewparse.prompt import Part, Prompt

TUNED: ParserOptions = {"adapter": load_domain("calendar").adapter_path("canonical")}
PROMPTED: ParserOptions = {"adapter": NO_ADAPTER, "decoder": "greedy", "target": "program", "examples": 3}
OTHER_PROMPT = Prompt((Part("Fruits: apple, pear,", False),))
UTTERANCES = ("who is in the budget review", "what time is my next meeting", "is the atlas room free tomorrow")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of masks that the engine computes and of grammars that it compiles."""
    counts: Counter[str] = Counter()

    def count(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return counting

    for module in (cfg, configuration):
        monkeypatch.setattr(module, "engine_mask", count("masks", cfg.engine_mask))
    monkeypatch.setattr(engine, "compile_text", count("grammars", engine.compile_text))
    return counts


@pytest.mark.parametrize(
    ("options", "exact", "about"),
    [
        pytest.param(
            TUNED,
            {"grammars": 1, "prefill_tokens": 39},
            {"requests": 11, "forward_tokens": 39, "forward_passes": 24, "masks": 20},
            id="tuned",
        ),
        pytest.param(
            PROMPTED,
            {"grammars": 1, "prefill_tokens": 243},
            {"requests": 49, "forward_tokens": 46, "forward_passes": 49, "masks": 94},
            id="prompted",
        ),
    ],
)
def test_the_cost_of_three_parses(
    model: EmbeddedModel,
    counted: Counter[str],
    options: ParserOptions,
    exact: dict[str, int],
    about: dict[str, int],
) -> None:
    parser = Parser.from_domain("calendar", model, **options)
    model.next_tokens(OTHER_PROMPT, [()], 1, b"\n", Usage())  # what other tests left in the KV cache is dropped
    used = Usage()
    for utterance in UTTERANCES:
        used += parser.parse(utterance).usage
    found = {**{name: int(value or 0) for name, value in used.as_dict().items()}, **counted}
    assert {name: found[name] for name in exact} == exact
    for name, number in about.items():
        assert 0.9 * number <= found[name] <= 1.1 * number, f"{name}: {found[name]}, not {number}"
