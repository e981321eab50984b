"""Shared by all tests: the real models, loaded once, the benchmark datasets, and the division among workers."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fewparse.datasets.registry import DATASETS
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.lm.catalogue import GEMMA3
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.http.load import KEY_VARIABLES, URL_VARIABLES, RemoteSettings, open_remote
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.transformers import TransformersModel
from fewparse.lm.weights import pull
from support import campaign
from support.data import GEOQUERY, OVERNIGHT, SMCALFLOW
from support.extras import need_stored, need_torch
from support.llama_server import llama_cpp_server
from support.postgres import Cluster, postgres_cluster
from support.shop import ROWS, SCHEMA

os.environ |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}  # before the consoles of the command line exist
CONFIG = tempfile.TemporaryDirectory(prefix="fewparse-config-")
os.environ["FEWPARSE_CONFIG"] = CONFIG.name  # which folders are trusted

settings.register_profile(
    "fewparse",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    campaign.PROFILE,
    settings.get_profile("fewparse"),
    derandomize=False,
    print_blob=True,
    max_examples=100 * campaign.FACTOR,
)
settings.load_profile("fewparse")

LONGEST = (
    "test_documents_run.py",
    "test_model_laws.py",
    "test_transformers.py",
    "test_gemma.py",
    "test_prefix_cache.py",
)
"""Files that take longest; a worker runs whole files, so these are first."""


def pytest_configure() -> None:
    """Give each worker cores of its own: threads of llama.cpp that share a core stall each other by spinning."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and hasattr(os, "sched_setaffinity"):
        cores, workers = sorted(os.sched_getaffinity(0)), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        os.sched_setaffinity(0, cores[int(worker.removeprefix("gw")) :: workers] or cores)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@pytest.fixture(scope="session")
def model() -> Iterator[EmbeddedModel]:
    """The real embedded model. All tests share its KV cache, which must not change any result."""
    opened = EmbeddedModel(pull())
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def gemma() -> Iterator[EmbeddedModel]:
    """Gemma 3 270M: sliding-window attention, SentencePiece, a vocabulary of 262,144 tokens."""
    need_stored(GEMMA3)
    opened = EmbeddedModel(pull(GEMMA3), name="embedded:gemma3-270m")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def transformers_model() -> Iterator[TransformersModel]:
    """The same weights, read and evaluated by transformers."""
    need_torch()
    opened = TransformersModel(str(pull()))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def llama_server() -> Iterator[str]:
    """The address of llama.cpp's own server with the same weights."""
    with llama_cpp_server(pull()) as url:
        yield url


@pytest.fixture
def isolated_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache folder, and an environment without the address or the key of a server."""
    for name in (*URL_VARIABLES, *KEY_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def served_model(llama_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteModel]:
    """The same weights behind that server, with a response cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*URL_VARIABLES, *KEY_VARIABLES):
            patch.delenv(name, raising=False)
        patch.setenv("FEWPARSE_CACHE", str(tmp_path_factory.mktemp("served")))
        opened = open_remote("openai", "", RemoteSettings(base_url=llama_server, top_logprobs=1000))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def geoquery_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with GeoQuery, imported from the copy beside the project."""
    source = GEOQUERY
    if not source.is_dir():
        pytest.skip("the GeoQuery dataset was not found: set FEWPARSE_DATA")
    folder = tmp_path_factory.mktemp("data")
    DATASETS["geoquery"].import_from(source, folder)
    return folder


@pytest.fixture(scope="session")
def overnight_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all of Overnight, imported from the copy beside the project."""
    source = OVERNIGHT
    if not source.is_dir():
        pytest.skip("the Overnight dataset was not found: set FEWPARSE_DATA")
    folder = tmp_path_factory.mktemp("data")
    DATASETS["overnight"].import_from(source, folder)
    return folder


@pytest.fixture(scope="session")
def smcalflow_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with SMCalFlow, imported from the copy beside the project."""
    source = SMCALFLOW
    if not source.is_dir():
        pytest.skip("the SMCalFlow dataset was not found: set FEWPARSE_DATA")
    folder = tmp_path_factory.mktemp("data")
    DATASETS["smcalflow"].import_from(source, folder)
    return folder


@pytest.fixture(scope="session")
def smcalflow(smcalflow_data: Path) -> Domain:
    """The domain SMCalFlow with the real data."""
    return load_domain("smcalflow", smcalflow_data)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A throw-away PostgreSQL cluster whose database `shop` is the shop; skipped where PostgreSQL is absent."""
    with postgres_cluster() as cluster:
        cluster.execute("CREATE DATABASE shop")
        cluster.execute(SCHEMA + ROWS, "shop")
        yield cluster
