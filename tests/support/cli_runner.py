"""Run the command line: in this process by default, or as a process of its own for signals and pipes."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

from fewparse.cli import main
from fewparse.cli.console import DEFECT
from fewparse.lm import weights
from fewparse.lm.catalogue import find_weights
from fewparse.lm.embedded import EmbeddedModel, identify_embedded
from fewparse.lm.load import EMBEDDED, MODEL_KINDS, ModelKind, ModelSettings

COMMAND = str(Path(sys.executable).with_name("fewparse"))
PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
QUICK = ("--examples", "2", "--decoder", "greedy")
HALL = "turn on the lamp in the hall"


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def fewparse(
    *arguments: str | bytes, stdin: str | bytes = b"", env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a command in this process, with the embedded model loaded once. No error may escape as a traceback."""
    texts = [os.fsdecode(argument) for argument in arguments]
    inputs = io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    streams = mock.patch.multiple(sys, argv=["fewparse", *texts], stdin=inputs, stdout=out, stderr=err)
    with mock.patch.dict(os.environ, {**PLAIN, **(env or {})}), streams, shared_model():
        try:
            main.run()
            code = 0
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    ended = CommandResult(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))
    assert ended.code != DEFECT, ended.err
    return ended


def fewparse_process(
    *arguments: str | bytes, stdin: str | bytes = b"", env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a command as a process to its end."""
    done = subprocess.run(
        [COMMAND, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env={**os.environ, **PLAIN, **(env or {})},
        timeout=300,
    )
    ended = CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert ended.code >= 0, f"ended by signal {-ended.code}"
    assert "Traceback" not in ended.out + ended.err, ended.err
    assert ended.code != DEFECT, ended.err
    return ended


def start_process(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a command as a process, with pipes to its standard streams."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [COMMAND, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **PLAIN}
    )


@contextmanager
def shared_model() -> Iterator[None]:
    """Let the model kind `embedded` open each model once for all commands."""
    kind = ModelKind(open_shared, argument="NAME", optional=True, adapters=True, identify=identify_embedded)
    with mock.patch.dict(MODEL_KINDS._loaded, {EMBEDDED: kind}):
        yield


def open_shared(name: str, settings: ModelSettings) -> EmbeddedModel:
    """Return an embedded model, loaded on first use."""
    found = find_weights(name)
    return loaded_model(weights.pull(found, progress=settings.progress), found.name)


@cache
def loaded_model(path: Path, name: str) -> EmbeddedModel:
    """Return the model of a file, under its name in the catalogue."""
    return SharedModel(path, name=f"{EMBEDDED}:{name}")


class SharedModel(EmbeddedModel):
    """An embedded model, which stays open for the next command."""

    def close(self) -> None:
        """Do nothing."""


def without_model(folder: Path) -> dict[str, str]:
    """Return an environment without weights and without a way to download them."""
    return {
        "FEWPARSE_CACHE": str(folder / "no-models-here"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull,
    }
