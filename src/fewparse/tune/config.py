"""How a model is tuned: the few numbers, chosen on training examples."""

from dataclasses import dataclass

from fewparse.errors import UsageError

FEWEST_EXAMPLES = 10
FEWEST_HELD_OUT, MOST_HELD_OUT = 5, 50


@dataclass(frozen=True)
class TuneConfig:
    """What can be chosen of a tuning.

    `held_out` is the share of examples by which the number of epochs is found, at most `epochs`; it is given up
    after `patience` epochs that were no better. With nothing held out, all epochs are gone through.
    """

    rank: int = 8
    scale: float = 2.0
    rate: float = 1e-3
    batch: int = 8
    epochs: int = 8
    patience: int = 3
    held_out: float = 0.1
    seed: int = 0

    def check(self) -> None:
        """Refuse what makes no sense before anything is loaded."""
        if not (1 <= self.rank <= 256 and 1 <= self.batch <= 1024 and 1 <= self.epochs <= 1000):
            raise UsageError("the rank is 1 to 256, a batch 1 to 1024 examples, and the epochs are 1 to 1000")
        if not (0 < self.rate <= 1 and 0 < self.scale <= 100 and self.patience >= 1):
            raise UsageError("the learning rate is above 0 and at most 1, the scale above 0 and at most 100")
        if not 0 <= self.held_out <= 0.5:
            raise UsageError("the part that is held out is between 0 and 0.5")

    def held_out_of(self, examples: int) -> int:
        """How many of so many examples are held out."""
        if examples < FEWEST_EXAMPLES:
            raise UsageError(
                f"{examples} examples are too few to tune a model",
                f"Write at least {FEWEST_EXAMPLES}; a hundred or more are better. Until then, prompt it.",
            )
        if not self.held_out:
            return 0
        return min(MOST_HELD_OUT, max(FEWEST_HELD_OUT, round(self.held_out * examples)))
