"""The command line: all commands, and errors as messages with an exit code."""

import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer

import fewparse
from fewparse.cli.commands import CommandGroup
from fewparse.cli.console import DEFECT, FAILED, INTERRUPTED, echo, show_error, warn
from fewparse.errors import FewparseError

TRACEBACK_VARIABLE = "FEWPARSE_TRACEBACK"

app = typer.Typer(
    cls=CommandGroup,
    help="Turn a handful of examples and a grammar into a semantic parser.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def show_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        echo(f"fewparse {fewparse.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Turn a handful of examples and a grammar into a semantic parser."""


def show_warning(message: Warning | str, *_location: Any, **_rest: Any) -> None:
    """Print a Python warning like the other warnings of the commands."""
    warn(str(message))


def run() -> None:
    """Run the command line; errors are printed and become exit codes."""
    warnings.showwarning = show_warning
    replace_closed_streams()
    try:
        try:
            app(prog_name="fewparse")
        finally:
            sys.stdout.flush()
    except FewparseError as error:
        sys.exit(show_error(error))
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        discard_output()
        sys.exit(FAILED)
    except OSError as error:
        discard_output()
        sys.exit(show_error(FewparseError(f"a file cannot be read or written: {error}", "Is the disk full?")))
    except MemoryError:
        sys.exit(show_error(FewparseError("there is not enough memory", "Use a smaller input or model.")))
    except Exception as error:
        sys.exit(show_defect(error))


def replace_closed_streams() -> None:
    """Open the null device in the place of standard streams that the caller has closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 -- open until the end


def discard_output() -> None:
    """Redirect standard output, which cannot be written, so that the interpreter reports no error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_defect(error: Exception) -> int:
    """Print an error that fewparse should have handled, with its traceback if requested; return the exit code."""
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    message = f"a defect in fewparse: {type(error).__name__}: {error}"
    show_error(FewparseError(message, f"Please report it, with the output of {TRACEBACK_VARIABLE}=1 fewparse ..."))
    return DEFECT
