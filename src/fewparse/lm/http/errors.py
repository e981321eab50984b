"""What servers say when they say no, in our words, with what to do next."""

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

from fewparse.errors import ContextOverflow, FewparseError, ModelError, ServerRefused, ServerUnavailable

LONGEST_QUOTE = 300
OUT_OF_MONEY = ("insufficient_quota", "billing", "credit balance")
CONTEXT_WORDS = ("context", "too long", "maximum input length", "prompt is longer")
NUMBER = re.compile(r"\d{2,}")
ROOM = re.compile(r"(?:context (?:length|size|window)|at most|maximum|limit)[^\d.;]{0,20}(\d{2,})", re.IGNORECASE)


class Refusal(NamedTuple):
    """A server's no: its reason in short, the error it makes, and whether it is final whatever its status."""

    reason: str
    error: FewparseError
    final: bool


def refusal(status: int, answer: Any, url: str, body: Mapping[str, Any], said: str) -> Refusal:
    """What a status other than 200 means; `said` are the server's words, without secrets."""
    code = str(error_of(answer).get("code") or error_of(answer).get("type") or "")
    told = f"{code} {said}".lower()
    out_of_money = status == 402 or (status == 429 and any(word in told for word in OUT_OF_MONEY))
    reason = f"status {status}{f': {said}' if said else ''}"
    error: ModelError = ServerRefused(f"{url} refuses the request ({reason})", hint_for(said))
    if status in (401, 403):
        error = ServerRefused(
            f"{url} refuses the key, or the lack of one ({reason})",
            "Put the right one into OPENAI_API_KEY (or FEWPARSE_API_KEY, which comes first).",
        )
    elif status == 404:
        error = ServerRefused(
            f"{url} knows no such model or address ({reason})",
            f"The model asked for is {body.get('model')!r}. `fewparse models probe` shows which there are; "
            "a model that only chats is openai-chat:NAME; the address (--base-url) mostly ends in /v1.",
        )
    elif status in (301, 302, 303, 307, 308):
        error = ServerRefused(f"{url} sends us elsewhere ({reason})", "Give the final address as --base-url.")
    elif out_of_money:
        error = ServerRefused(
            f"{url}: the account has nothing left to spend ({reason})",
            "Look at the account's plan and billing; what was answered is cached.",
        )
    elif status in (400, 413, 422) and any(word in said.lower() for word in CONTEXT_WORDS):
        error = overflow(answer, said) or error
    return Refusal(reason, error, out_of_money)


def overflow(answer: Any, said: str) -> ContextOverflow | None:
    """A context too long, in whichever words: how much was needed, and how much there is."""
    told = error_of(answer)
    if isinstance(told.get("n_prompt_tokens"), int) and isinstance(told.get("n_ctx"), int):
        return ContextOverflow(told["n_prompt_tokens"], told["n_ctx"])
    numbers = {int(number) for number in NUMBER.findall(said)}
    if len(numbers) < 2:
        return None
    room = ROOM.search(said)
    return ContextOverflow(max(numbers), int(room[1]) if room else min(numbers))


def hint_for(said: str) -> str:
    """What to do about a refusal that only the server's own words explain."""
    if "chat" in said.lower():
        return "This model seems to chat only: use openai-chat:NAME."
    return "`fewparse models probe` finds out anew what the server does."


def network_failure(error: Exception, url: str) -> ServerUnavailable | None:
    """A failure to connect that trying again will not mend; None for others."""
    cause: BaseException | None = error
    while cause is not None:
        words = one_line(str(cause))
        if isinstance(cause, ssl.SSLError) or "SSL" in words or "certificate" in words.lower():
            return ServerUnavailable(
                f"{url}: no secure connection ({words})",
                "Is it https:// at all? A certificate of your own: SSL_CERT_FILE names the file to trust.",
            )
        if isinstance(cause, socket.gaierror):
            return ServerUnavailable(
                f"{url}: there is no such host ({words})", "Is the address (--base-url) right?"
            )
        cause = cause.__cause__ or cause.__context__
    return None


def error_of(answer: Any) -> dict[str, Any]:
    """The error object of an answer, wherever servers put it."""
    if not isinstance(answer, dict):
        return {}
    told = answer.get("error", answer)
    return told if isinstance(told, dict) else {"message": told}


def message(answer: Any) -> str:
    """What the server says went wrong."""
    told = error_of(answer)
    said = told.get("message") or told.get("detail") or told.get("error") or ""
    return said if isinstance(said, str) else str(said)


def one_line(text: str) -> str:
    """As much of a text as is worth quoting."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_QUOTE else flat[:LONGEST_QUOTE] + "…"
