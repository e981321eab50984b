"""An adapter: low-rank corrections of a model's weights, in a GGUF file that says where it comes from."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fewparse.errors import CorruptModel
from fewparse.lm.gguf import file_sha256, read_metadata

PROVENANCE = "fewparse.provenance"


class Provenance(BaseModel):
    """What an adapter was tuned for, on and with.

    It serves one target of a domain, asked with one template and so many examples in the prompt. Of the examples
    that were held out while the number of epochs was sought, so many were parsed right.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    domain: str
    target: str
    prompt: str
    base: str
    base_sha256: str
    data_sha256: str
    examples: int
    epochs: int
    held_out: int
    held_out_correct: int
    config: dict[str, float | int | list[str]]
    fewparse: str


@dataclass(frozen=True)
class Adapter:
    """A file with corrections; somebody else's has no provenance that fewparse can read."""

    path: Path
    sha256: str
    provenance: Provenance | None


def read_adapter(path: Path) -> Adapter:
    """Read what an adapter says of itself; what is none is refused before the native library sees it."""
    said = read_metadata(path)
    if said.get("general.type") != "adapter" or said.get("adapter.type") != "lora":
        raise CorruptModel(
            f"{path} is a GGUF file, but no low-rank adapter",
            "A model is given by --model gguf:PATH; an adapter is made by: fewparse tune DOMAIN",
        )
    try:
        provenance = Provenance.model_validate_json(said[PROVENANCE]) if PROVENANCE in said else None
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors()[0]["loc"])) or "all of it"
        raise CorruptModel(
            f"the provenance in {path} cannot be read ({wrong})",
            "It may be from another version of fewparse: tune the domain again.",
        ) from None
    return Adapter(path, file_sha256(path), provenance)
