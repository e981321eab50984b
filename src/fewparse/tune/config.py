"""The hyperparameters of a tuning run; the defaults were chosen on training examples."""

from dataclasses import asdict, dataclass

from fewparse.errors import UnknownName, UsageError

LAYERS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""The linear layers of a transformer block, by their names in GGUF files."""
MIN_EXAMPLES = 10
MIN_HELD_OUT, MAX_HELD_OUT = 5, 50


@dataclass(frozen=True)
class TuneConfig:
    """All hyperparameters of a tuning run.

    - `rank`, `scale`, `layers`: the LoRA layers. `scale` multiplies their output (alpha / rank); `layers` are the
      linear layers of every block that get one.
    - `learning_rate`, `warmup`, `final_learning_rate`: the schedule. The rate rises linearly during the first
      `warmup` (a share of all steps), then falls linearly to `final_learning_rate` (a share of `learning_rate`).
    - `beta1`, `beta2`, `weight_decay`, `max_grad_norm`: AdamW and gradient clipping.
    - `batch_size`: examples per step.
    - `augmented`: the share of examples that are augmented, from the second epoch on.
    - `held_out`, `epochs`, `patience`: early stopping. The number of epochs, at most `epochs`, is chosen on the
      share `held_out` of the examples; the search stops after `patience` epochs without improvement. With nothing
      held out, the number of epochs is `epochs`.
    - `seed`: for the initial weights, the held-out part, the order of examples and their augmentation.
    """

    rank: int = 8
    scale: float = 2.0
    learning_rate: float = 1e-3
    batch_size: int = 8
    epochs: int = 8
    patience: int = 3
    held_out: float = 0.1
    seed: int = 0
    warmup: float = 0.1
    final_learning_rate: float = 0.02
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    augmented: float = 0.5
    layers: tuple[str, ...] = LAYERS

    def check(self) -> None:
        """Raise `UsageError` for a value out of range and `UnknownName` for an unknown layer."""
        ranges = (
            ("rank", 1 <= self.rank <= 256, "from 1 to 256"),
            ("scale", 0 < self.scale <= 100, "above 0 and at most 100"),
            ("learning_rate", 0 < self.learning_rate <= 1, "above 0 and at most 1"),
            ("batch_size", 1 <= self.batch_size <= 1024, "from 1 to 1024"),
            ("epochs", 1 <= self.epochs <= 1000, "from 1 to 1000"),
            ("patience", self.patience >= 1, "at least 1"),
            ("held_out", 0 <= self.held_out <= 0.5, "from 0 to 0.5"),
            ("seed", self.seed >= 0, "at least 0"),
            ("warmup", 0 <= self.warmup <= 1, "from 0 to 1"),
            ("final_learning_rate", 0 <= self.final_learning_rate <= 1, "from 0 to 1"),
            ("beta1", 0 <= self.beta1 < 1, "at least 0 and below 1"),
            ("beta2", 0 <= self.beta2 < 1, "at least 0 and below 1"),
            ("weight_decay", 0 <= self.weight_decay <= 1, "from 0 to 1"),
            ("max_grad_norm", self.max_grad_norm > 0, "above 0"),
            ("augmented", 0 <= self.augmented <= 1, "from 0 to 1"),
            ("layers", len(self.layers) > 0, "at least one layer"),
        )
        for name, is_valid, expected in ranges:
            if not is_valid:
                raise UsageError(f"{name} is {getattr(self, name)!r}, but must be {expected}")
        for layer in self.layers:
            if layer not in LAYERS:
                raise UnknownName("layer", layer, LAYERS)

    def held_out_count(self, examples: int) -> int:
        """Return how many of `examples` examples are held out; raise `UsageError` if there are too few to tune."""
        if examples < MIN_EXAMPLES:
            raise UsageError(
                f"{examples} examples are too few to tune a model",
                f"Write at least {MIN_EXAMPLES}; a hundred or more are better. Until then, prompt the model.",
            )
        if not self.held_out:
            return 0
        return min(MAX_HELD_OUT, max(MIN_HELD_OUT, round(self.held_out * examples)))

    def as_dict(self) -> dict[str, float | int | list[str]]:
        """Return all hyperparameters by name, as a JSON object."""
        return asdict(self) | {"layers": list(self.layers)}
