"""A real schema registry for tests: Apicurio from Maven, in its own process on a free port."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from ops.broker.jars import cache_dir

VERSION = "3.3.3"
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
JAVA_MIN = 21
READY_S = 90.0
DOWNLOAD_S = 600.0
STOP_S = 10.0


def find_java() -> Path | None:
    """A Java of version 21 or later: JAVA21_HOME, JAVA_HOME, then the usual folder."""
    homes = [os.environ[name] for name in ("JAVA21_HOME", "JAVA_HOME") if name in os.environ]
    folder = Path("/usr/lib/jvm")
    installed = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []
    for home in (*map(Path, homes), *installed):
        java = home / "bin" / "java"
        if java.is_file() and _major(java) >= JAVA_MIN:
            return java
    return None


def missing() -> str:
    """What keeps the registry from running here, or an empty string."""
    if find_java() is None:
        return f"no Java {JAVA_MIN} or later found (set JAVA21_HOME)"
    if shutil.which("mvn") is None and not _jar(_home()).is_file():
        return "Maven is missing (install mvn once to fetch the registry)"
    return ""


@contextlib.contextmanager
def running_registry() -> Iterator[str]:
    """The address of a registry that is up; it stops with the block."""
    java = find_java()
    assert java is not None
    home = _resolved()
    port = _free_port()
    # In memory by default; the log goes to a file, so that a full pipe cannot stop it.
    with tempfile.NamedTemporaryFile(prefix="registry-", suffix=".log") as log:
        process = subprocess.Popen(
            [java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", _jar(home)],
            cwd=home,
            env={
                **os.environ,
                "QUARKUS_HTTP_HOST": "127.0.0.1",
                "QUARKUS_HTTP_PORT": str(port),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
            _wait_until_ready(url, process, Path(log.name))
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _major(java: Path) -> int:
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found.group(1)) if found else 0


def _home() -> Path:
    return cache_dir() / f"apicurio-{VERSION}"


def _jar(home: Path) -> Path:
    return home / "quarkus-run.jar"


def _resolved() -> Path:
    """The unpacked registry; fetched once, whole or not at all, by one process at a time."""
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _jar(home).is_file():
            with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
                _fetch(Path(temporary)).rename(home)
    return home


def _fetch(folder: Path) -> Path:
    subprocess.run(
        [
            "mvn",
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={ARTIFACT}",
            f"-DoutputDirectory={folder}",
        ],
        cwd=folder,
        check=True,
        timeout=DOWNLOAD_S,
    )
    (archive,) = folder.glob("*.tar.gz")
    unpacked = folder / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", unpacked], check=True, timeout=DOWNLOAD_S)
    (jar,) = unpacked.glob("**/quarkus-run.jar")
    return jar.parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"registry did not come up:\n{log.read_text()[-2_000:]}")
