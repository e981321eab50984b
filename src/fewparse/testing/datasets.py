"""Laws of datasets.

Each law is a function of a registered dataset, a folder with its files, and an empty folder to write to. The files
may be a small part of the dataset, in any format that its `convert` accepts.
"""

import copy
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from unittest.mock import patch

from fewparse.datasets.checksum import Checksum
from fewparse.datasets.dataset import ORIGINAL, Dataset, PublishedFile, Sources, mirror_variable
from fewparse.datasets.storage import TEST, TRAIN
from fewparse.domains.load import find_domain, load_domain
from fewparse.errors import DataUnavailable, FewparseError, UsageError

Law = Callable[[Dataset, Path, Path], None]


def domain_names_start_with_the_name_of_the_dataset(dataset: Dataset, source: Path, folder: Path) -> None:
    """A dataset has distinct domains, called `name` if there is only one, else `name/part`."""
    assert dataset.domains, "`domains` is empty"
    assert len(set(dataset.domains)) == len(dataset.domains), f"`domains` has duplicates: {dataset.domains}"
    for domain in dataset.domains:
        is_part = domain.startswith(f"{dataset.name}/") and domain.count("/") == 1
        assert is_part or dataset.domains == (dataset.name,), f"{domain!r} is not {dataset.name!r} or a part of it"


def every_domain_has_settings(dataset: Dataset, source: Path, folder: Path) -> None:
    """The domain.toml of a dataset, with the settings of each domain, is valid without any examples."""
    for name in dataset.domains:
        domain = find_domain(name, folder)
        assert domain.name == name, f"the settings of {name} have the name {domain.name!r}"
        assert domain.data == folder / name, f"the examples of {name} are expected in {domain.data}"


def a_missing_domain_has_a_download_hint(dataset: Dataset, source: Path, folder: Path) -> None:
    """In an empty data folder nothing is stored, and loading a domain names the command that downloads it."""
    assert dataset.stored(folder) == (), "an empty data folder has stored domains"
    for name in dataset.domains:
        error = raised(DataUnavailable, load_domain, name, folder)
        assert f"fewparse data get {dataset.name}" in str(error), f"no command to download {name}: {error}"


def an_import_reports_what_it_stores(dataset: Dataset, source: Path, folder: Path) -> None:
    """The result of an import lists the domains that are then stored, with their numbers of examples."""
    result = dataset.import_from(source, folder)
    assert result.stored, f"nothing was imported from {source}"
    assert result.stored == dataset.stored(folder), "the result of the import differs from what is stored"
    for stored in result.stored:
        assert stored.domain in dataset.domains, f"{stored.domain} is not one of `domains`"
        assert stored.path == folder / stored.domain, f"{stored.domain} is stored in {stored.path}"
        for name, count in ((TRAIN, stored.train), (TEST, stored.test)):
            lines = (stored.path / name).read_bytes().removesuffix(b"\n").split(b"\n")
            examples = [json.loads(line) for line in lines]
            assert len(examples) == count > 0, f"{name} has {len(examples)} examples, reported are {count}"
            for example in examples:
                assert example["utterance"], f"{name} of {stored.domain}: no utterance in {example}"
                assert example["program"], f"{name} of {stored.domain}: no program in {example}"


def an_imported_domain_loads(dataset: Dataset, source: Path, folder: Path) -> None:
    """Every domain that was imported can be loaded by its name, with the notes on its data."""
    for stored in dataset.import_from(source, folder).stored:
        domain = load_domain(stored.domain, folder)
        assert domain.examples, f"{stored.domain} has no training examples"
        assert len(domain.test_examples) == stored.test, f"{stored.domain} has other test examples than stored"
        assert domain.data_notes == stored.data_notes, f"{stored.domain} has other data notes than stored"


def an_import_is_reproducible(dataset: Dataset, source: Path, folder: Path) -> None:
    """The same files give the same bytes in a second import or from a subfolder, and stay unchanged."""
    before = contents(source)
    shutil.copytree(source, folder / "copy" / "some" / "subfolder")
    dataset.import_from(source, folder / "first")
    first = contents(folder / "first")
    dataset.import_from(source, folder / "first")
    assert contents(folder / "first") == first, "a second import changed the stored files"
    dataset.import_from(folder / "copy", folder / "second")
    assert contents(folder / "second") == first, "files in a subfolder were imported differently"
    assert contents(source) == before, "the import changed its source"


def a_failed_import_changes_nothing(dataset: Dataset, source: Path, folder: Path) -> None:
    """A folder that is missing or has none of the files is an error, and the stored files stay unchanged."""
    data, empty = folder / "data", folder / "empty"
    empty.mkdir()
    dataset.import_from(source, data)
    before = contents(data)
    raised(UsageError, dataset.import_from, folder / "missing", data)
    raised(DataUnavailable, dataset.import_from, empty, data)
    assert contents(data) == before, "a failed import changed the stored files"


def a_download_equals_an_import_and_is_reused(dataset: Dataset, source: Path, folder: Path) -> None:
    """A download from the mirror of the environment variable stores what an import does.

    Once downloaded, a dataset needs no network, unless the download is forced; when that fails, nothing changes.
    """
    dataset = copy.copy(dataset)
    paths = [path for path in sorted(source.rglob("*")) if path.is_file()]
    dataset.sources = Sources("http://127.0.0.1:9", tuple(published(path, source) for path in paths))
    data = folder / "downloaded"
    with serving(source) as base_url, environment(mirror_variable(dataset.name), base_url):
        result = dataset.download(data)
    imported = dataset.import_from(source, folder / "imported")
    assert [stored.domain for stored in result.stored] == [stored.domain for stored in imported.stored]
    first = contents(data)
    original = f"{dataset.name}/{ORIGINAL}/"
    converted = {name: content for name, content in first.items() if not name.startswith(original)}
    assert converted == contents(folder / "imported"), "a download stores other files than an import"
    with environment(mirror_variable(dataset.name), base_url):
        dataset.download(data)
        assert contents(data) == first, "a second download changed the stored files"
        raised(DataUnavailable, dataset.download, data, force=True)
    assert contents(data) == first, "a failed download changed the stored files"


DATASET_LAWS: tuple[Law, ...] = (
    domain_names_start_with_the_name_of_the_dataset,
    every_domain_has_settings,
    a_missing_domain_has_a_download_hint,
    an_import_reports_what_it_stores,
    an_imported_domain_loads,
    an_import_is_reproducible,
    a_failed_import_changes_nothing,
    a_download_equals_an_import_and_is_reused,
)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file in or below a folder by its relative path."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def raised(
    expected: type[FewparseError], function: Callable[..., object], *arguments: object, **options: object
) -> FewparseError:
    """Call a function and return the error of the expected type that it raises."""
    try:
        function(*arguments, **options)
    except expected as error:
        return error
    raise AssertionError(f"expected {expected.__name__}, and nothing was raised")


def published(path: Path, source: Path) -> PublishedFile:
    """Describe a file as sources.json does."""
    content = path.read_bytes()
    relative = PurePosixPath(path.relative_to(source).as_posix())
    return PublishedFile(relative, len(content), Checksum.of(content))


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder without logging."""

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback interface; yield its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a context, without proxies."""
    with patch.dict(os.environ, {"no_proxy": "*", name: value}):
        yield
