"""Apache Kafka's jars, resolved once by Maven into a cache folder that all checkouts share."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ops.broker.kinds import Say, quiet
from tallystick.errors import OperatorError

KAFKA_VERSION = "4.4.0"
MAIN_JAR = f"kafka_2.13-{KAFKA_VERSION}.jar"

SLF4J_VERSION = "1.7.36"
"""That of Kafka's own slf4j-api. Kafka's jars bring no logger: without this one a broker that
cannot start ends without a word."""

JAVA_MIN = 17
"""Kafka 4 brokers are compiled for Java 17; an older one fails with a class file error."""

MAVEN_S = 600
"""44 jars of 43 MB take 3 s on a good line; lower gives up on a slow one."""

HOW_TO_GET = (
    "install Java 17 or later and Maven, e.g. `apt-get install openjdk-17-jre-headless maven` "
    "or `brew install openjdk maven`"
)

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tallystick</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>{SLF4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """TALLYSTICK_CACHE, or `tallystick` in the user's cache folder."""
    if named := env.get("TALLYSTICK_CACHE"):
        return Path(named)
    if xdg := env.get("XDG_CACHE_HOME"):
        return Path(xdg) / "tallystick"
    return Path.home() / ".cache" / "tallystick"


def find_java(env: Mapping[str, str] = os.environ) -> str | None:
    """The `java` of JAVA_HOME, else of PATH."""
    if home := env.get("JAVA_HOME"):
        inside = shutil.which("java", path=str(Path(home) / "bin"))
        if inside:
            return inside
    return shutil.which("java", path=env.get("PATH", ""))


def java_major(java: str) -> int:
    """The major version that `java -version` reports; 0 if it reports none."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else 0


def missing(env: Mapping[str, str] = os.environ) -> str:
    """Why Apache Kafka cannot run here, in a few words; empty if it can."""
    java = find_java(env)
    if java is None:
        return "java is not on PATH"
    major = java_major(java)
    if major < JAVA_MIN:
        return f"{java} is Java {major or 'of unknown version'}, not {JAVA_MIN} or later"
    if not _complete(libs_dir(env)) and shutil.which("mvn", path=env.get("PATH", "")) is None:
        return "mvn (Maven) is not on PATH"
    return ""


def libs_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Where the jars lie, or will lie."""
    return cache_dir(env) / f"kafka-{KAFKA_VERSION}" / "libs"


def resolve(env: Mapping[str, str] = os.environ, say: Say = quiet) -> Path:
    """The folder with Kafka's jars; asks Maven the first time, and one process at a time.

    Raises OperatorError with what to install, or with Maven's own last words.
    """
    if why := missing(env):
        raise OperatorError(why, where="apache", fix=f"{HOW_TO_GET}; or use --kind embedded")
    libs = libs_dir(env)
    if _complete(libs):
        return libs
    libs.parent.mkdir(parents=True, exist_ok=True)
    with (libs.parent / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _complete(libs):
            say(f"resolving Apache Kafka {KAFKA_VERSION} with Maven into {libs}")
            _download(libs, env)
    return libs


def _complete(libs: Path) -> bool:
    # The folder appears by one rename, so a main jar means that all of them are there.
    return (libs / MAIN_JAR).is_file()


def _download(libs: Path, env: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=libs.parent, prefix="fetch-") as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM, encoding="utf-8")
        fresh = Path(scratch) / "libs"
        maven = shutil.which("mvn", path=env.get("PATH", "")) or "mvn"
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        try:
            answer = subprocess.run(
                [*command, f"-DoutputDirectory={fresh}"],
                capture_output=True,
                text=True,
                check=False,
                timeout=MAVEN_S,
                env=dict(env),
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise OperatorError(
                f"Maven did not finish within {MAVEN_S} s", where="apache", fix="check the network"
            ) from error
        if answer.returncode != 0 or not _complete(fresh):
            raise OperatorError(
                f"Maven could not resolve Kafka {KAFKA_VERSION}: {_first_error(answer.stdout)}",
                where="apache",
                fix="check the network or Maven's settings.xml, or use --kind embedded",
            )
        fresh.rename(libs)


def _first_error(output: str) -> str:
    lines = [line for line in output.splitlines() if "ERROR" in line]
    return (lines or output.splitlines() or ["it said nothing"])[0].strip()[:300]
