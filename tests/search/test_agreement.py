"""The decoder `sampling`: outputs are ranked by the share of the samples that agree on them."""

from collections import Counter
from itertools import accumulate

import pytest

from fewparse import SearchSettings, Trie, Usage
from fewparse.errors import UsageError
from fewparse.events import Completed, Event, Sampled
from fewparse.lm.model import Sampling
from fewparse.search.decode import decode
from support.toy_model import ANYTHING, ToyModel

SETTINGS = SearchSettings(decoder="sampling", width=50, temperature=1.0, max_tokens=8)
WORDS = ["a", "b", "c", "ab", "bc", "ca", "abc"]
LONGEST = ["bc", "ca", "abc"]


def well_formed_samples(model: ToyModel) -> list[str]:
    """The samples that the decoder gets, those that are words; a word that nothing may follow ends there."""
    sampling = Sampling(n=50, temperature=1.0, max_tokens=8, seed=1, alternatives=SETTINGS.alternatives)
    (samples,) = model.sample(ANYTHING, [()], sampling, Usage())
    found = []
    for sample in samples:
        starts = list(accumulate(token.bytes.decode("latin-1") for token in sample.tokens))
        whole = [starts[-1]] if sample.ended and starts else []
        found += [word for word in starts if word in LONGEST] or [word for word in whole if word in WORDS]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_score_is_the_logarithm_of_the_share_of_equal_samples(seed: int) -> None:
    model = ToyModel(seed)
    found = decode(model, ANYTHING, Trie(WORDS, model.vocabulary), SETTINGS, Usage())
    expected = Counter(well_formed_samples(model))
    assert {h.text.decode(): round(50 * (h.share or 0)) for h in found} == expected
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert all(2.718281828**h.score == pytest.approx(h.share) for h in found)


def test_if_no_sample_is_well_formed_the_longest_start_is_completed() -> None:
    model, events = ToyModel(), list[Event]()
    (found,) = decode(model, ANYTHING, Trie(["abxyz", "cxy"], model.vocabulary), SETTINGS, Usage(), events.append)
    cut = [event for event in events if isinstance(event, Sampled)]
    assert {event.outcome for event in cut} == {"cut", "rejected"}
    longest = max((b"".join(event.pieces[: event.valid]) for event in cut), key=len)
    assert [event for event in events if isinstance(event, Completed)] == [Completed(longest, b"xyz")]
    assert found.text == b"abxyz"
    assert found.finished


def test_a_decoder_that_needs_log_probabilities_is_refused_without_them() -> None:
    class Silent(ToyModel):
        supports_logprobs = False

    with pytest.raises(UsageError, match="ranks by log-probabilities") as caught:
        decode(Silent(), ANYTHING, Trie(WORDS, ToyModel().vocabulary), SearchSettings(), Usage())
    assert caught.value.hint == "Use --decoder sampling."
