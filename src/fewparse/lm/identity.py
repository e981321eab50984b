"""What identifies a model in results and caches, known without loading it."""

from fewparse.files import exists, user_path
from fewparse.lm.catalogue import find_weights
from fewparse.lm.checked_files import checked_sha256
from fewparse.lm.load import EMBEDDED


def model_identity(name: str, server: str | None = None) -> dict[str, str]:
    """Return the name of a model with the SHA-256 of its file, or with the address of its server."""
    kind, _, argument = name.partition(":")
    if kind == EMBEDDED:
        return {"name": name, "sha256": find_weights(argument).sha256}
    if kind == "gguf" and exists(path := user_path(argument)):
        return {"name": name, "sha256": checked_sha256(path)}
    return {"name": name, "server": server} if server else {"name": name}
