"""The kinds of broker, what is remembered about a running one, and the handle that ends it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Self

import msgspec

from ops.broker.processes import ProcessRef

Say = Callable[[str], None]
"""Takes one line of progress; the command line prints it on stderr."""


def quiet(_line: str) -> None:
    """A `Say` for callers that show nothing."""


class BrokerKind(StrEnum):
    """Where the broker comes from."""

    EXTERNAL = "external"
    APACHE = "apache"
    DOCKER = "docker"
    EMBEDDED = "embedded"

    @property
    def fences_generations(self) -> bool:
        """Whether a commit of an older group generation is refused (engine rule 3)."""
        return self is not BrokerKind.EMBEDDED


class Node(msgspec.Struct, frozen=True):
    """One broker process; `controller_port` is 0 where there is no KRaft controller."""

    node_id: int
    port: int
    controller_port: int
    process: ProcessRef


class BrokerState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What another process needs to find, describe and end a broker."""

    kind: BrokerKind
    bootstrap: str
    version: str
    state_dir: str = ""
    nodes: tuple[Node, ...] = ()
    container: str = ""


class BrokerHandle(ABC):
    """A broker that answers; `stop` ends it, twice is harmless."""

    @property
    @abstractmethod
    def state(self) -> BrokerState:
        """What runs now; a restarted node changes it."""

    @abstractmethod
    def stop(self) -> None:
        """End the broker; data that was made for this handle alone goes too."""

    @property
    def kind(self) -> BrokerKind:
        """Where the broker comes from."""
        return self.state.kind

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        return self.state.bootstrap

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
