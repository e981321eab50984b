"""`fewparse feedback`: the log of parses and of what users said about them, and its review."""

from pathlib import Path
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.console import echo, out, show_error, warn
from fewparse.confidence.feedback import FeedbackEntry, FeedbackLog
from fewparse.confidence.review import (
    Conflict,
    add_example,
    add_out_of_scope,
    as_lines,
    check_editable,
    checked_example,
    to_review,
)
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import FewparseError, UsageError
from fewparse.example import Example
from fewparse.files import os_reason, user_path, write_atomically
from fewparse.text import to_json

app = typer.Typer(help="The log of parses and of what users said about them.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per entry.")]
Ids = Annotated[list[int] | None, typer.Argument(help="Ids of entries.")]
MAX_SHOWN = 9
HELP = "y: right | 1-9: that candidate | a program or canonical utterance | o: out of scope | s: skip | q: quit"


@app.command("list")
def list_entries(domain: options.Domain, as_json: AsJson = False, data: options.Data = None) -> None:
    """List the entries of the log, oldest first."""
    entries = opened(domain, data)[1].entries()
    if as_json:
        for line in as_lines(entries):
            echo(line)
        return
    for entry in entries:
        confidence = "     " if entry.confidence is None else f"{entry.confidence:.3f}"
        said = entry.outcome or "-"
        echo(
            f"{entry.id:5}  {entry.time[:16]}  {confidence}  {entry.decision or '-':8}  {said:12}  "
            f"{entry.utterance}"
        )
    if not entries:
        echo(
            "The log is empty. To log parses: fewparse parse --log, or log = true under [feedback] in domain.toml."
        )


@app.command()
def show(
    domain: options.Domain,
    entry: Annotated[int, typer.Argument(help="Id of the entry.")],
    as_json: AsJson = False,
    data: options.Data = None,
) -> None:
    """Show an entry with its candidates."""
    log = opened(domain, data)[1]
    found = log.entries([entry])
    if not found:
        raise UsageError(f"the log has no entry {entry}", f"List them: fewparse feedback list {domain}")
    if as_json:
        echo(to_json(found[0].as_dict()))
    else:
        show_entry(found[0])


@app.command()
def export(
    domain: options.Domain,
    path: Annotated[
        Path | None, typer.Option("--out", help="File to write (default: standard output).", metavar="PATH")
    ] = None,
    data: options.Data = None,
) -> None:
    """Write all entries as lines of JSON."""
    lines = list(as_lines(opened(domain, data)[1].entries()))
    if path is None:
        for line in lines:
            echo(line)
        return
    try:
        write_atomically(user_path(path), "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {os_reason(error)}") from None
    echo(f"{len(lines)} entries: {path}")


@app.command()
def forget(
    domain: options.Domain,
    entries: Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all entries.")] = False,
    data: options.Data = None,
) -> None:
    """Delete entries of the log: those with the given ids, or all."""
    if bool(entries) == everything:
        raise UsageError("give the ids of the entries to delete, or --all")
    deleted = opened(domain, data)[1].forget(None if everything else entries)
    echo(f"{deleted} entries deleted")


@app.command()
def review(
    domain: options.Domain,
    limit: Annotated[int | None, typer.Option(help="Review at most LIMIT entries.", min=1)] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also review executed parses that nobody has corrected.")
    ] = False,
    data: options.Data = None,
) -> None:
    """Walk through unsure and corrected parses, most informative first, and add them to the domain.

    What is right is appended to examples.jsonl, what is out of scope to
    out_of_scope.jsonl. The next prompt uses the new examples at once; a tuned
    model learns them by `fewparse tune`.
    """
    loaded, log = opened(domain, data)
    check_editable(loaded)
    pending = to_review(log.entries(), everything)[:limit]
    added = 0
    for number, entry in enumerate(pending, 1):
        if is_dealt_with(log, entry):
            continue
        out.print(f"{number} of {len(pending)}", style="dim")
        show_entry(entry)
        result = reviewed(loaded, log, entry)
        if result is None:
            break
        added += result
    echo(f"{added} added to {loaded.data}" if pending else "There is nothing to review.")


def reviewed(domain: Domain, log: FeedbackLog, entry: FeedbackEntry) -> bool | None:
    """Ask about one entry until it is dealt with; return whether something was added, None to quit."""
    while (answer := prompt(f"[{HELP}] ")) not in (None, "q"):
        assert answer is not None
        if answer == "s":
            return False
        try:
            example = example_of(domain, entry, answer)
            if is_dealt_with(log, entry):
                warn("another review has dealt with this entry meanwhile")
                return False
            result = added(domain, entry, example)
            log.mark_reviewed(entry.id)
            return result
        except FewparseError as error:
            show_error(error)
    return None


def is_dealt_with(log: FeedbackLog, entry: FeedbackEntry) -> bool:
    """Return whether another process has reviewed or deleted an entry meanwhile."""
    return all(each.reviewed for each in log.entries([entry.id]))


def example_of(domain: Domain, entry: FeedbackEntry, answer: str) -> Example | None:
    """Return the example that an answer stands for; None for out of scope."""
    if answer == "o":
        return None
    if answer in ("y", "") or answer.isdecimal():
        programs = proposals(entry)
        number = int(answer) if answer.isdecimal() else 1
        if answer == "" or not 1 <= number <= len(programs):
            raise UsageError(f"{answer!r} is not an answer" if answer == "" else f"there is no candidate {number}")
        answer = programs[number - 1]
    return checked_example(domain, entry.utterance, answer, entry.context)


def proposals(entry: FeedbackEntry) -> list[str]:
    """Return the programs to choose from: the user's own first, then those of the candidates."""
    found = [entry.program, *(candidate.program for candidate in entry.candidates)]
    return list(dict.fromkeys(program for program in found if program is not None))[:MAX_SHOWN]


def added(domain: Domain, entry: FeedbackEntry, example: Example | None) -> bool:
    """Add an example or an out-of-scope utterance; ask if the utterance is in the domain as something else."""
    choices: dict[str, dict[str, bool]] = {"r": {"replace": True}, "b": {"beside": True}}
    given: dict[str, bool] = {}
    while True:
        try:
            if example is None:
                result = add_out_of_scope(domain, entry.utterance, entry.context, given.get("replace", False))
            else:
                result = add_example(domain, example, **given)
        except Conflict as conflict:
            warn(conflict.message)
            allowed = choices if example is not None else {"r": choices["r"]}
            both = " | b: keep both" if example is not None else ""
            answer = prompt(f"[r: replace{both} | anything else: leave it] ")
            if answer not in allowed:
                return False
            given = allowed[answer]
        else:
            if result == "present":
                echo("  It is there already.")
            return result == "added"


def show_entry(entry: FeedbackEntry) -> None:
    """Print an entry with its candidates, numbered as in a review."""
    facts: list[str] = [entry.decision or "no decision"]
    facts += [] if entry.confidence is None else [f"confidence {entry.confidence:.3f}"]
    facts += [] if entry.outcome is None else [f"the user: {entry.outcome.replace('_', ' ')}"]
    out.print(entry.utterance, style="bold", markup=False)
    if entry.context:
        out.print(f"  after: {entry.context}", style="dim", markup=False)
    out.print(f"  {entry.id}, {entry.time[:16]}, {entry.model}: {', '.join(facts)}", style="dim", markup=False)
    texts = {candidate.program: candidate.text for candidate in entry.candidates}
    for number, program in enumerate(proposals(entry), 1):
        own = " (the user's)" if program == entry.program else ""
        text = texts.get(program, program)
        out.print(f"  {number}. {text}{own}", style="cyan", markup=False)
        if text != program:
            out.print(f"     {program}", style="cyan", markup=False)


def prompt(question: str) -> str | None:
    """Return the next line of standard input; None at its end."""
    try:
        return input(f"  {question}").strip()
    except EOFError:
        return None


def opened(domain: str, data: Path | None) -> tuple[Domain, FeedbackLog]:
    """Return a domain, whose code does not run, and its log."""
    loaded = load_domain(domain, data, allow_code=False)
    return loaded, FeedbackLog.of(loaded, warn)
