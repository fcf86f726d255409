"""What is missing for Apache Kafka is said in one line; Maven runs once, into one place."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ops.broker import apache, jars
from tallystick.errors import OperatorError

JAVA_17 = "#!/bin/sh\necho 'openjdk version \"17.0.1\" 2025' >&2\n"
JAVA_8 = "#!/bin/sh\necho 'java version \"1.8.0_400\"' >&2\n"
MAVEN = f"""#!/bin/sh
echo run >> "$CALLS"
for word in "$@"; do case $word in -DoutputDirectory=*) out=${{word#*=}};; esac; done
/bin/mkdir -p "$out" && : > "$out/{jars.MAIN_JAR}"
"""
BROKEN_MAVEN = "#!/bin/sh\necho '[INFO] x'\necho '[ERROR] no route to the repository'\nexit 1\n"


def machine(folder: Path, **programs: str) -> dict[str, str]:
    """An environment whose PATH holds only these programs."""
    folder.mkdir(exist_ok=True)
    for name, text in programs.items():
        program = folder / name
        program.write_text(text)
        program.chmod(0o755)
    return {
        "PATH": str(folder),
        "TALLYSTICK_CACHE": str(folder / "cache"),
        "CALLS": str(folder / "calls"),
    }


@pytest.mark.parametrize(
    ("programs", "why"),
    [
        ({}, "java is not on PATH"),
        ({"java": JAVA_8, "mvn": MAVEN}, "is Java 8, not 17 or later"),
        ({"java": "#!/bin/sh\n", "mvn": MAVEN}, "is Java of unknown version"),
        ({"java": JAVA_17}, "mvn (Maven) is not on PATH"),
    ],
    ids=["no java", "old java", "silent java", "no maven"],
)
def test_what_is_missing_is_named_with_how_to_get_it(
    tmp_path: Path, programs: dict[str, str], why: str
) -> None:
    env = machine(tmp_path / "bin", **programs)

    with pytest.raises(OperatorError) as caught:
        apache.start(env=env)

    assert why in str(caught.value)
    assert "apt-get install" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not Path(env["TALLYSTICK_CACHE"]).exists()


def test_cached_jars_need_no_maven(tmp_path: Path) -> None:
    env = machine(tmp_path / "bin", java=JAVA_17)
    libs = jars.libs_dir(env)
    libs.mkdir(parents=True)
    (libs / jars.MAIN_JAR).touch()

    assert jars.missing(env) == ""
    assert jars.resolve(env) == libs


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    env = machine(tmp_path / "bin", java=JAVA_8, mvn=MAVEN)
    machine(tmp_path / "jdk")
    machine(tmp_path / "jdk" / "bin", java=JAVA_17)

    assert jars.missing({**env, "JAVA_HOME": str(tmp_path / "jdk")}) == ""


def test_two_at_once_ask_maven_once(tmp_path: Path) -> None:
    env = machine(tmp_path / "bin", java=JAVA_17, mvn=MAVEN)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(jars.resolve(env))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [jars.libs_dir(env)] * 4
    assert Path(env["CALLS"]).read_text() == "run\n"
    assert [path.name for path in jars.libs_dir(env).parent.glob("fetch-*")] == []


def test_a_failed_download_leaves_nothing_and_says_mavens_own_words(tmp_path: Path) -> None:
    env = machine(tmp_path / "bin", java=JAVA_17, mvn=BROKEN_MAVEN)

    with pytest.raises(OperatorError, match="no route to the repository"):
        jars.resolve(env)

    assert not jars.libs_dir(env).exists()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TALLYSTICK_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, Path("/x/tallystick")),
        ({}, Path.home() / ".cache" / "tallystick"),
    ],
)
def test_the_cache_folder(env: dict[str, str], expected: Path) -> None:
    assert jars.cache_dir(env) == expected
