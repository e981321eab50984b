"""`fewparse serve`: the HTTP API, the playground for the browser, and MCP."""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewparse.cli import options
from fewparse.cli.console import err, named_model, opened_model, warn
from fewparse.cli.remote import remote_settings
from fewparse.cli.trust import code_allowed, warn_of_code
from fewparse.cli.warnings import warn_of_gaps
from fewparse.domains.load import load_domain
from fewparse.errors import SourceError, UsageError
from fewparse.files import read_text, user_path
from fewparse.limits import SETTINGS_BYTES
from fewparse.lm.load import EMBEDDED
from fewparse.options import ParserOptions

if TYPE_CHECKING:
    from fewparse.serve.domain import ServedDomain

SERVER, SAFETY = "Server", "Safety"
KEY_VARIABLE = "FEWPARSE_API_KEY"
MISSING = "the server needs packages that are not installed"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    domains: Annotated[
        list[str], typer.Argument(metavar="DOMAIN...", help="Names of domains, or paths of folders.")
    ],
    host: Annotated[
        str, options.option(SERVER, "Address to listen on; any but loopback needs an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, options.option(SERVER, "Port to listen on.", min=0, max=65_535)] = 8000,
    reload: Annotated[
        bool, options.option(SERVER, "Read a domain again when its files change.", "--reload")
    ] = False,
    mcp: Annotated[
        Literal["http", "stdio"] | None,
        options.option(
            SERVER, "Also serve tools for agents at /mcp (http), or only these on stdin and stdout (stdio)."
        ),
    ] = None,
    playground: Annotated[
        bool, options.option(SERVER, "Whether the page for the browser is served.", "--playground/--no-playground")
    ] = True,
    queue: Annotated[int, options.option(SERVER, "Number of requests that may wait.", min=0)] = 64,
    request_deadline: Annotated[
        float, options.option(SERVER, "Seconds after which a request fails.", min=0.1)
    ] = 60.0,
    trusted_proxies: Annotated[
        str | None,
        options.option(SERVER, "Addresses of reverse proxies whose X-Forwarded-For is believed, with commas."),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        options.option(SAFETY, f"File with API keys, one per line (or ${KEY_VARIABLE}).", metavar="PATH"),
    ] = None,
    allow_execute: Annotated[
        bool,
        options.option(
            SAFETY, "Execute programs that have effects when a request asks for it.", "--allow-execute"
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None, options.option(SAFETY, "Host name under which the server answers (repeatable).")
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        options.option(SAFETY, "Web origin whose pages may send requests, https://example.org (repeatable)."),
    ] = None,
    allow_code: options.AllowCode = False,
    model: options.Model = EMBEDDED,
    adapter: options.Adapter = None,
    data: options.Data = None,
    decoder: options.Decoder = None,
    width: options.Width = None,
    retriever: options.Retriever = None,
    retriever_model: options.RetrieverModel = None,
    examples: options.Examples = None,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
) -> None:
    """Serve domains: an HTTP API, a page to try and correct them in, and tools for agents (MCP)."""
    check_installed(mcp is not None)
    from fewparse.serve.app import create_app
    from fewparse.serve.domain import ServedDomain
    from fewparse.serve.limits import ServeLimits
    from fewparse.serve.security import check_keys
    from fewparse.serve.server import log_to_stderr, make_server, open_socket

    keys = read_keys(api_key_file)
    check_keys(keys)
    loopback = host in LOOPBACK
    if not (loopback or keys or mcp == "stdio"):
        raise UsageError(
            f"the host {host} can be reached from other machines, and there is no API key",
            f"Write one to a file and name it with --api-key-file, set {KEY_VARIABLE}, or use --host 127.0.0.1.",
        )
    log_to_stderr()
    given: ParserOptions = {
        "adapter": adapter,
        "decoder": decoder,
        "width": width,
        "examples": examples,
        "retriever": retriever,
    }
    remote = remote_settings(
        [model, retriever_model],
        base_url,
        max_concurrency,
        timeout,
        deadline,
        max_tokens_total,
        max_cost,
        cache,
        context_length,
    )
    limits = ServeLimits(queue=queue, deadline=request_deadline)
    with ExitStack() as stack:
        listening = None if mcp == "stdio" else stack.enter_context(open_socket(host, port))
        loaders = [partial(load_domain, name, data, allow_code=code_allowed(name, allow_code)) for name in domains]
        for load in loaders:
            load()
        opened = stack.enter_context(opened_model(model, remote, max_concurrency))
        ranking = stack.enter_context(named_model(retriever_model, remote))
        served = [ServedDomain(load, opened, model, limits, allow_execute, given, ranking) for load in loaders]
        warn_of(served)
        hosts = [*LOOPBACK, "[::1]", *(allow_host or [])] if loopback or allow_host else []
        app = create_app(
            served,
            opened,
            limits=limits,
            api_keys=keys,
            hosts=hosts,
            cors_origins=cors_origin or [],
            reload=reload,
            mcp=mcp == "http",
            playground=playground,
        )
        if listening is None:
            from fewparse.serve.mcp import run_stdio

            run_stdio(app.state.service)
            return
        address = listening.getsockname()
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        message = f"Serving {', '.join(each.name for each in served)} at http://{shown}:{address[1]}/"
        on_start = partial(err.print, message, markup=False)
        make_server(app, trusted_proxies, on_start=on_start).run(sockets=[listening])


def check_installed(with_mcp: bool) -> None:
    """Raise `UsageError` if a package of the extra is missing."""
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{MISSING}: {error.name}", "pip install 'fewparse[serve]'") from None
    if with_mcp:
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise UsageError(f"{MISSING}: mcp", "pip install 'fewparse[mcp]'") from None


def read_keys(path: Path | None) -> list[str]:
    """Return the API keys of a file, or the one of the environment."""
    if path is None:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        return [key] if key else []
    text = read_text(user_path(path), SourceError, SETTINGS_BYTES)
    keys = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not keys:
        raise UsageError(f"{path} has no API key", "Write one to each line.")
    return keys


def warn_of(served: "list[ServedDomain]") -> None:
    """Warn of gaps in grammars, calibrations for other settings, and domains whose programs are not executed."""
    for each in served:
        warn_of_gaps(each.domain, each.options)
        if each.options.execute:
            warn_of_code(each.domain)
        if (note := each.calibration_note) is not None:
            warn(note)
