"""References within a document: JSON pointers after `#`, as in JSON Schema and OpenAPI."""

from typing import Any
from urllib.parse import unquote

from fewparse.errors import SourceError, shortened

MAX_STEPS = 100


class SpecDocument:
    """A parsed JSON or YAML document that declares functions, and the path of its file, for messages."""

    def __init__(self, root: Any, path: str) -> None:
        self.root = root
        self.path = path

    def error(self, where: str, message: str, hint: str | None = None) -> SourceError:
        """Return the error for a place in the document, such as `paths./pets.get`."""
        return SourceError(f"{where}: {message}" if where else message, self.path, hint=hint)

    def find(self, reference: Any, where: str) -> Any:
        """Return the value that a reference names; raise `SourceError` if it is not in this document."""
        if not isinstance(reference, str):
            raise self.error(where, "a $ref must be a text")
        if not reference.startswith("#"):
            raise self.error(
                where,
                f"refers to another document: {shortened(reference)}",
                "Nothing is downloaded: bundle the documents into one first.",
            )
        value = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            elif isinstance(value, dict) and key in value:
                value = value[key]
            else:
                raise self.error(where, f"refers to {shortened(reference)}, which is not in the document")
        return value

    def resolve(self, value: Any, where: str) -> Any:
        """Follow `$ref` from an object until one has none; raise `SourceError` if they lead in a circle."""
        for _ in range(MAX_STEPS):
            if not (isinstance(value, dict) and "$ref" in value):
                return value
            value = self.find(value["$ref"], where)
        raise self.error(where, "its $ref leads in a circle")
