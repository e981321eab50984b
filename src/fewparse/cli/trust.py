"""`fewparse trust`: the domain folders whose code may run; shared by the commands that run it."""

from pathlib import Path
from typing import Annotated

import typer

from fewparse.cli.console import echo, warn
from fewparse.domains.domain import Domain
from fewparse.domains.trust import distrust_folder, is_trusted, trust_folder, trusted_folders
from fewparse.errors import UsageError
from fewparse.files import user_path


def trust(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Domain folder whose code you have reviewed.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the trusted folders.")] = False,
    remove: Annotated[
        Path | None, typer.Option("--remove", metavar="DIR", help="Folder that is no longer trusted.")
    ] = None,
) -> None:
    """Trust a domain folder: from now on, the commands run its executor and its normal form.

    Folders made by `fewparse new` are trusted. A folder that is moved is not.
    """
    if (folder is not None) + show + (remove is not None) != 1:
        raise UsageError("give a folder to trust, or --list, or --remove DIR")
    if show:
        for trusted in trusted_folders(warn):
            echo(trusted)
    elif remove is not None:
        if not distrust_folder(remove):
            raise UsageError(f"{remove} is not a trusted folder", "List them: fewparse trust --list")
        echo(f"Its code no longer runs: {remove}")
    elif folder is not None:
        echo(f"Trusted: {trust_folder(folder)}")


def code_allowed(domain: str, allow_code: bool) -> bool:
    """Return whether the code of a domain folder may run: by `--allow-code`, or because it is trusted."""
    return allow_code or is_trusted(user_path(domain), warn)


def warn_of_code(domain: Domain) -> None:
    """Warn that programs are not executed if the folder is not trusted."""
    if domain.has_executor and not domain.allow_code:
        message, hint = domain.not_trusted("executor")
        warn(f"{message}. {hint}")
