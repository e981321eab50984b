"""Models behind toy servers, probed and connected as any other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.client import Server
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import RemoteModel
from support.server_behaviours import Manners
from support.toy_model import ToyModel
from support.toy_server import ToyServer

EVERYTHING = 300
"""More tokens than the toy has."""
M = TypeVar("M", bound=RemoteModel)


@contextmanager
def toy_remote(
    kind: type[M], manners: Manners, model: ToyModel | None = None, top: int = EVERYTHING
) -> Iterator[tuple[M, ToyServer]]:
    """A model of this kind behind a server with these manners, and that server, which forgets the probe."""
    with ToyServer(manners, model) as server:
        connected = Server(server.url)
        capabilities = probe(connected, "toy", kind is ChatModel)
        opened = kind(connected, "toy", capabilities, Budget(BudgetLimits(), None), top=top)
        server.requests.clear()
        try:
            yield opened, server
        finally:
            opened.close()


@contextmanager
def toy_completions(manners: Manners, model: ToyModel | None = None) -> Iterator[CompletionsModel]:
    """Where only the model matters."""
    with toy_remote(CompletionsModel, manners, model) as (opened, _):
        yield opened
