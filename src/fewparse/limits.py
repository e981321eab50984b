"""Limits on sizes and times of what comes from outside; environment variables override their defaults."""

import math
import os

from fewparse.errors import UsageError


class Limit:
    """A limit with a default; the environment variable `variable` overrides it.

    `purpose` and `unit` describe it in messages and in the table of docs/security.md.
    """

    def __init__(self, variable: str, default: int, unit: str, purpose: str) -> None:
        self.variable = variable
        self.default = default
        self.unit = unit
        self.purpose = purpose

    @property
    def value(self) -> float:
        """The limit in force; raises `UsageError` if the environment variable is not a positive number."""
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise UsageError(
                f"{self.variable} is {text!r}, not a positive number of {self.unit}",
                f"It limits the {self.purpose}; without it, the limit is {self.default} {self.unit}.",
            )
        return number

    @property
    def hint(self) -> str:
        """How to raise the limit, for an error message."""
        return f"If it is correct, raise the limit: set {self.variable} to a larger number of {self.unit}."


FILE_BYTES = Limit("FEWPARSE_MAX_FILE_BYTES", 512_000_000, "bytes", "size of a file that is read whole, unpacked")
SETTINGS_BYTES = Limit("FEWPARSE_MAX_SETTINGS_BYTES", 1_000_000, "bytes", "size of a domain.toml or a prompt")
GRAMMAR_BYTES = Limit("FEWPARSE_MAX_GRAMMAR_BYTES", 16_000_000, "bytes", "size of a file of a grammar or schema")
RESPONSE_BYTES = Limit("FEWPARSE_MAX_RESPONSE_BYTES", 64_000_000, "bytes", "decoded size of a server's response")
EXECUTION_SECONDS = Limit(
    "FEWPARSE_EXECUTION_SECONDS", 10, "seconds", "time to execute one program, or to load the code"
)
ANSWER_BYTES = Limit("FEWPARSE_MAX_ANSWER_BYTES", 10_000_000, "bytes", "size of a program's answer as JSON")
EXECUTION_MEMORY = Limit(
    "FEWPARSE_EXECUTION_MEMORY", 4_000_000_000, "bytes", "memory of the process that executes programs"
)

MODEL_CHECK_SECONDS = Limit("FEWPARSE_MODEL_CHECK_SECONDS", 300, "seconds", "time to try a new model file once")
MODEL_CHECK_BYTES = Limit(
    "FEWPARSE_MODEL_CHECK_BYTES", 16_000_000_000, "bytes", "memory to try a new model file, besides its own size"
)
MODEL_DOWNLOAD_SECONDS = Limit("FEWPARSE_MODEL_DOWNLOAD_SECONDS", 3600, "seconds", "time to download the model")

LIMITS = (
    FILE_BYTES,
    SETTINGS_BYTES,
    GRAMMAR_BYTES,
    RESPONSE_BYTES,
    EXECUTION_SECONDS,
    ANSWER_BYTES,
    EXECUTION_MEMORY,
    MODEL_CHECK_SECONDS,
    MODEL_CHECK_BYTES,
    MODEL_DOWNLOAD_SECONDS,
)
