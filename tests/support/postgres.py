"""A throw-away PostgreSQL cluster: started in a temporary folder, on a free port of the loopback interface."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

PASSWORD = "correct horse battery staple"
USER = "tester"


@dataclass(frozen=True)
class Cluster:
    """A running cluster; local connections need no password, those by TCP do."""

    folder: Path
    port: int

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database by the socket."""
        return f"postgresql://{USER}@/{database}?host={quote(str(self.folder), safe='')}&port={self.port}"

    def tcp_url(self, password: str | None = PASSWORD, database: str = "postgres") -> str:
        """Return the URL of a database by TCP."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{USER}{secret}@127.0.0.1:{self.port}/{database}"

    def execute(self, script: str, database: str = "postgres") -> None:
        """Run statements as the administrator."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(script)


def programs() -> Path | None:
    """Return the folder of initdb and postgres, which Debian does not put on the search path."""
    found = [Path(path).resolve() for name in ["initdb"] if (path := shutil.which(name))]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]))
    candidates = [path.parent for path in [*found, *debian] if (path.parent / "postgres").exists()]
    return candidates[-1] if candidates else None


@contextmanager
def postgres_cluster() -> Iterator[Cluster]:
    """Start a cluster for a context; skip the test where PostgreSQL is not installed."""
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="fewparse-postgres-"))
    process: subprocess.Popen[bytes] | None = None
    try:
        owner = other_user(folder)
        (folder / "password").write_text(PASSWORD)
        data = folder / "data"
        access = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={folder / 'password'}"]
        command = [str(binaries / "initdb"), "-D", str(data), "-U", USER, "-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run([*command, *access], check=True, stdout=subprocess.DEVNULL, cwd=folder, **owner)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder}
        settings |= {"fsync": "off", "max_connections": 30, "shared_buffers": "16MB"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, *options], stdout=log, stderr=log, cwd=folder, **owner
            )
        cluster = Cluster(folder, port)
        wait_until_ready(cluster, process)
        yield cluster
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # immediate shutdown: nothing has to be kept
            process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def other_user(folder: Path) -> dict[str, Any]:
    """Give the folder to the user who runs the cluster; PostgreSQL refuses to run as the administrator."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def wait_until_ready(cluster: Cluster, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the cluster accepts connections; raise `RuntimeError` with its log if it ends."""
    import psycopg

    for _ in range(600):
        try:
            psycopg.connect(cluster.url()).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError((cluster.folder / "log").read_text(errors="replace"))
