"""LoRA adapters in GGUF files, with a record of how they were made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fewparse.errors import CorruptModel
from fewparse.lm.checked_files import checked_sha256, has_passed, record_passed
from fewparse.lm.gguf import read_gguf, read_metadata
from fewparse.lm.gguf_check import adapter_problems

PROVENANCE = "fewparse.provenance"


class Provenance(BaseModel):
    """How an adapter was tuned; stored as JSON in the metadata of its file.

    It is for one `target` of a `domain`, with the template `prompt`, on the base model with the hash
    `base_sha256`. `outputs_sha256` is a hash of the grammar of its outputs; None if that is made from examples, or
    unknown. `examples` is the number of training examples. `held_out` of them were used to choose the number of
    `epochs`, and `held_out_correct` of those were parsed correctly.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    domain: str
    target: str
    prompt: str
    base: str
    base_sha256: str
    data_sha256: str
    outputs_sha256: str | None = None
    examples: int
    epochs: int
    held_out: int
    held_out_correct: int
    config: dict[str, float | int | list[str]]
    fewparse: str

    def other_use(self, domain: str, target: str, outputs_sha256: Callable[[], str | None]) -> str | None:
        """Return for what else than a domain and a target the adapter was tuned; None if for these.

        A domain under another name with the same grammar, such as a copy, is the same. The hash of the grammar is
        computed if it is needed.
        """
        if self.target != target:
            return f"the target {self.target}"
        if self.outputs_sha256 is not None:
            return None if self.outputs_sha256 == outputs_sha256() else "another grammar"
        return None if self.domain == domain else f"the domain {self.domain}"


@dataclass(frozen=True)
class Adapter:
    """An adapter file; `provenance` is None if it was made by another tool."""

    path: Path
    sha256: str
    provenance: Provenance | None


def read_adapter(path: Path) -> Adapter:
    """Read the metadata of an adapter file and check its weights, these only if the file is new.

    Raises `CorruptModel` if it is not a LoRA adapter, or damaged.
    """
    metadata = read_metadata(path)
    if metadata.get("general.type") != "adapter" or metadata.get("adapter.type") != "lora":
        raise CorruptModel(
            f"{path} is a GGUF file, but not a LoRA adapter",
            "To use it as a model: --model gguf:PATH. To make an adapter: fewparse tune DOMAIN",
        )
    try:
        provenance = Provenance.model_validate_json(metadata[PROVENANCE]) if PROVENANCE in metadata else None
    except ValidationError as error:
        location = ".".join(map(str, error.errors()[0]["loc"])) or "all of it"
        raise CorruptModel(
            f"the provenance in {path} cannot be read ({location})",
            "It may be from another version of fewparse: tune the domain again.",
        ) from None
    sha256 = checked_sha256(path)
    if not has_passed(("adapter", sha256)):
        if problems := adapter_problems(read_gguf(path)):
            raise CorruptModel(
                f"the adapter {path} is damaged: {problems[0]}", "Create it again: fewparse tune DOMAIN"
            )
        record_passed(("adapter", sha256))
    return Adapter(path, sha256, provenance)
