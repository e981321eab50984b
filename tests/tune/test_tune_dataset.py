"""Training sequences: the prompt of a parser, followed by the output and the stop token."""

from collections import Counter

import pytest

from fewparse.domains.domain import Domain
from fewparse.example import Example, Target
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from fewparse.tune.augment import augmenter_for
from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import TrainingSequence, TrainingSet, training_sequence
from support.switch_domain import EXAMPLES

EXAMPLE = Example("lamp off in the hall", "(off lamp hall)", canonical="darkness", context="it is late")


def decode(model: EmbeddedModel, tokens: tuple[int, ...]) -> str:
    return b"".join(model.vocabulary.tokens[token] for token in tokens).decode()


def test_a_sequence_is_the_prompt_of_a_parser_then_the_output_and_the_stop_token(
    tiny: EmbeddedModel, switches: Domain
) -> None:
    sequence = training_sequence(tiny, switches.template("tuned"), EXAMPLE, "program")
    text = "user\nit is late\nlamp off in the hall\nassistant\n(off lamp hall)\n"  # turn markers have no text
    assert decode(tiny, sequence.tokens) == text
    parser = Parser.from_domain(switches, tiny, prompt="tuned", examples=0)
    prompt = tiny.prompt_ids(parser.parse(EXAMPLE.utterance, EXAMPLE.context).prompt)
    assert sequence.tokens[: sequence.output_start] == prompt


@pytest.mark.parametrize(("target", "output"), [("program", "(off lamp hall)\n"), ("canonical", "darkness\n")])
def test_only_the_output_and_the_stop_token_count_for_the_loss(
    tiny: EmbeddedModel, switches: Domain, target: Target, output: str
) -> None:
    sequence = training_sequence(tiny, switches.template("tuned"), EXAMPLE, target)
    assert decode(tiny, sequence.tokens[sequence.output_start :]) == output


def test_the_output_is_tokenized_as_a_parser_would_generate_it(tiny: EmbeddedModel, switches: Domain) -> None:
    sequence = training_sequence(tiny, switches.template("tuned"), EXAMPLE, "program")
    tokens = tuple(token.id for token in tiny.tokenize("(off lamp hall)"))
    assert sequence.tokens[sequence.output_start : -1] == tokens


def epoch_order(
    training_set: TrainingSet, seed: int, epoch: int, augmented: float = 0.5
) -> list[TrainingSequence]:
    config = TuneConfig(batch_size=5, seed=seed, augmented=augmented)
    return [sequence for batch in training_set.batches(config, epoch) for sequence in batch]


@pytest.mark.parametrize("epoch", range(3))
def test_every_sequence_occurs_once_per_epoch_and_only_the_last_batch_is_smaller(
    training_set: TrainingSet, epoch: int
) -> None:
    batches = list(training_set.batches(TuneConfig(batch_size=5, seed=7), epoch))
    assert [len(batch) for batch in batches] == [5, 5, 2]
    assert Counter(sequence for batch in batches for sequence in batch) == Counter(training_set.sequences)


def test_every_epoch_and_every_seed_has_its_own_order(training_set: TrainingSet) -> None:
    orders = [epoch_order(training_set, seed, epoch) for seed in range(3) for epoch in range(3)]
    earlier = [[list(training_set.sequences), *orders[:i]] for i in range(len(orders))]
    assert all(one != other for one, others in zip(orders, earlier, strict=True) for other in others)


@pytest.fixture
def augmented_set(tiny: EmbeddedModel, switches: Domain) -> TrainingSet:
    return TrainingSet(tiny, switches.template("tuned"), EXAMPLES, "program", augmenter_for(switches))


def test_augmentation_is_deterministic_for_a_seed(augmented_set: TrainingSet) -> None:
    assert epoch_order(augmented_set, 7, 2) == epoch_order(augmented_set, 7, 2)


def test_the_first_epoch_has_the_original_examples_and_later_ones_augmented_examples_too(
    tiny: EmbeddedModel, augmented_set: TrainingSet
) -> None:
    assert sorted(epoch_order(augmented_set, 7, 0)) == sorted(augmented_set.sequences)
    later = [sequence for epoch in range(1, 4) for sequence in epoch_order(augmented_set, 7, epoch)]
    assert 0 < sum(sequence in augmented_set.sequences for sequence in later) < len(later) == 3 * len(EXAMPLES)
    texts = [decode(tiny, sequence.tokens) for sequence in later]
    assert any("attic" in text for text in texts), "a name that no example has"
    assert all(text.count(room) in (0, 2) for text in texts for room in ("hall", "office", "kitchen", "attic"))


def test_the_share_of_augmented_examples_is_that_of_the_configuration(augmented_set: TrainingSet) -> None:
    assert Counter(epoch_order(augmented_set, 7, 1, 0.0)) == Counter(augmented_set.sequences)

    def changed(augmented: float) -> int:
        sequences = [one for epoch in range(1, 5) for one in epoch_order(augmented_set, 7, epoch, augmented)]
        return sum(sequence not in augmented_set.sequences for sequence in sequences)

    assert changed(1.0) > changed(0.5) > changed(0.1) > 0
