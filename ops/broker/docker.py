"""Apache Kafka in a container, by testcontainers, from an image built on this machine.

The image is made by `docker_image/build.sh`; no image registry is asked for anything.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from ops.broker.jars import KAFKA_VERSION
from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState, Say, quiet
from ops.broker.ports import HOST, free_ports
from ops.broker.probe import wait_ready
from tallystick.errors import BrokerUnavailable, OperatorError

IMAGE_SETTING = "TALLYSTICK_KAFKA_IMAGE"
IMAGE = f"tallystick/kafka:{KAFKA_VERSION}"

READY_S = 90.0
"""As for Apache Kafka outside a container."""

ENGINE_S = 5
"""Lower mistakes a busy engine for none; higher makes `--kind auto` slow where none is."""

HOW_TO_GET = "start a Docker engine and run ops/broker/docker_image/build.sh"


class DockerBroker(BrokerHandle):
    """One container."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    @property
    def state(self) -> BrokerState:
        """What runs now."""
        return self._state

    def stop(self) -> None:
        """Remove the container and its data."""
        remove(self._state.container)


def image() -> str:
    """The image's name: TALLYSTICK_KAFKA_IMAGE, or ours."""
    return os.environ.get(IMAGE_SETTING) or IMAGE


def missing() -> str:
    """Why it cannot run here, in a few words; empty if it can."""
    if importlib.util.find_spec("testcontainers") is None:
        return "testcontainers is not installed"
    from docker.errors import DockerException, ImageNotFound

    try:
        client = _engine()
        client.images.get(image())
    except ImageNotFound:
        return f"the image {image()} is not built"
    except DockerException:
        return "no Docker engine answers"
    return ""


def start(*, say: Say = quiet, survive: bool = False) -> DockerBroker:
    """Start one node in a container, published on 127.0.0.1 only.

    The container outlives a killed parent; `survive` only says so to the reader.
    """
    del survive
    if why := missing():
        raise OperatorError(why, where="docker", fix=f"{HOW_TO_GET}, or use another kind")
    from testcontainers.core.config import testcontainers_config
    from testcontainers.core.container import DockerContainer

    # Its reaper is an image from a registry, and would end what `broker up` leaves running.
    testcontainers_config.ryuk_disabled = True
    (port,) = free_ports(1)
    say(f"starting {image()}")
    container = DockerContainer(image()).with_env("KAFKA_PORT", str(port))
    # Set by hand: `with_bind_ports` would publish on every address of the machine.
    published: Any = container.ports
    published[f"{port}/tcp"] = (HOST, port)
    container.start()
    wrapped: Any = container.get_wrapped_container()
    broker = DockerBroker(
        BrokerState(
            kind=BrokerKind.DOCKER,
            bootstrap=f"{HOST}:{port}",
            version=KAFKA_VERSION,
            container=str(wrapped.id),
        )
    )

    def still_alive() -> None:
        wrapped.reload()
        if wrapped.status != "running":
            last_words = wrapped.logs(tail=5).decode(errors="replace").replace("\n", " | ")
            raise BrokerUnavailable(f"the container ended: {last_words}", where=image())

    try:
        wait_ready(broker.bootstrap, brokers=1, within_s=READY_S, still_alive=still_alive)
    except BaseException:
        broker.stop()
        raise
    return broker


def remove(container: str) -> None:
    """End a container of ours by its id; harmless when it is gone."""
    from docker.errors import NotFound

    try:
        _engine().containers.get(container).remove(force=True, v=True)
    except NotFound:
        return


def is_running(container: str) -> bool:
    """Whether the container with this id runs."""
    from docker.errors import DockerException

    try:
        return bool(_engine().containers.get(container).status == "running")
    except DockerException:
        return False


def _engine() -> Any:
    from testcontainers.core.docker_client import DockerClient

    return DockerClient(timeout=ENGINE_S).client
