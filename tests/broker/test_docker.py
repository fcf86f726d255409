"""Apache Kafka in a container; needs a Docker engine and the built image (`make test-docker`)."""

from __future__ import annotations

import pytest

from ops.broker import choose, docker
from ops.broker.kinds import BrokerKind
from tallystick.errors import OperatorError
from tests.broker.clients import make_topic, read_all, transaction


@pytest.mark.docker
@pytest.mark.skipif(docker.missing() != "", reason=f"{docker.missing()} (make test-docker)")
def test_a_container_takes_transactions_and_leaves_nothing_behind() -> None:
    with choose.start(BrokerKind.DOCKER) as broker:
        container = broker.state.container
        make_topic(broker.bootstrap, "numbers")
        transaction(broker.bootstrap, "numbers", commit=False, value=b"1")
        transaction(broker.bootstrap, "numbers", commit=True, value=b"2")

        assert broker.kind is BrokerKind.DOCKER
        assert broker.kind.fences_generations
        assert broker.bootstrap.startswith("127.0.0.1:")
        assert read_all(broker.bootstrap, "numbers", 1) == [2]
        assert docker.is_running(container)

    assert not docker.is_running(container)


@pytest.mark.parametrize(
    "why", ["no Docker engine answers", "the image x is not built", "testcontainers is missing"]
)
def test_what_is_missing_is_one_line_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(docker, "missing", lambda: why)

    with pytest.raises(OperatorError) as caught:
        docker.start()

    assert str(caught.value).startswith(f"docker: {why} (")
    assert "build.sh" in str(caught.value)


def test_the_image_is_named_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(docker.IMAGE_SETTING, raising=False)
    assert docker.image() == docker.IMAGE
    monkeypatch.setenv(docker.IMAGE_SETTING, "mine:1")
    assert docker.image() == "mine:1"
