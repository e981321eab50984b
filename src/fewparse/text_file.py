"""A file as text, or a clear error."""

from pathlib import Path

from fewparse.errors import SourceError


def read_text(path: Path, complaint: type[SourceError]) -> str:
    """A file as UTF-8 text; the complaint is raised if it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise complaint(f"not UTF-8 text (byte {error.start + 1})", path) from None
    except OSError as error:
        raise complaint(f"cannot be read: {error.strerror}", path) from None
