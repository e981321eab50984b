"""Read YAML and JSON documents; mistakes are shown with their line."""

import re
from pathlib import Path
from typing import Any

from fewparse.domains.calls.declarations import read_json
from fewparse.domains.calls.references import SpecDocument
from fewparse.errors import SourceError, UsageError
from fewparse.files import read_text

IMPLICIT = {
    "tag:yaml.org,2002:bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "tag:yaml.org,2002:int": (r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    "tag:yaml.org,2002:float": (r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    "tag:yaml.org,2002:null": (r"^(?:~|null|Null|NULL|)$", "~nN\0"),
}
"""The plain scalars that are not texts, as in YAML 1.2: not `yes`, `on`, dates or numbers such as 010 and 1:30."""


def read_document(path: Path) -> SpecDocument:
    """Return a document in JSON, if its name ends in .json, or in YAML."""
    if path.suffix.lower() == ".json":
        return SpecDocument(read_json(path), str(path))
    return SpecDocument(parse_yaml(read_text(path, SourceError), path), str(path))


def parse_yaml(source: str, path: Path) -> Any:
    """Return the value of a YAML text; a mistake is a `SourceError` with line and column."""
    try:
        import yaml
    except ImportError:
        raise UsageError(
            f"{path} is YAML, and the package PyYAML is not installed",
            "pip install 'fewparse[openapi]', or convert the document to JSON (a file whose name ends in .json).",
        ) from None
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("Loader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, (pattern, first) in IMPLICIT.items():
        loader.add_implicit_resolver(tag, re.compile(pattern), [char.strip("\0") for char in first])
    try:
        return yaml.load(source, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"not valid YAML: {error.problem or error.context}"
        if mark is None:
            raise SourceError(message, path) from None
        raise SourceError(message, path, mark.line + 1, mark.column + 1, source) from None
    except yaml.YAMLError as error:
        raise SourceError(f"not valid YAML: {' '.join(str(error).split())}", path) from None
    except RecursionError:
        raise SourceError("its values are nested too deeply", path) from None
    except ValueError as error:
        raise SourceError(f"not valid YAML: {error}", path) from None
