"""What the loop counts, as Prometheus metrics; labels are bounded (never a key or an id)."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    start_http_server,
)

# From one bare transaction (about 5 ms) up to the transaction's own timeout.
_SECONDS = (0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 12)
# Up to the broker's default limit of 1 MiB, at which a row is refused.
_ROW_BYTES = (256, 1024, 4096, 16384, 65536, 262144, 1048576)


class PrometheusMetrics:
    """A `LoopMetrics` behind `/metrics`."""

    def __init__(
        self, registry: CollectorRegistry, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        self._on_ready = on_ready
        stage = ("stage",)
        self._folded = Counter(
            "tallystick_records_folded", "Input records and woken keys.", stage, registry=registry
        )
        self._commit_seconds = Histogram(
            "tallystick_commit_seconds",
            "One transaction, from its first record to its stored state.",
            stage,
            buckets=_SECONDS,
            registry=registry,
        )
        self._aborted = Counter(
            "tallystick_transactions_aborted",
            "Transactions given up, by cause.",
            ("stage", "cause"),
            registry=registry,
        )
        self._dead = Counter(
            "tallystick_dead_letters",
            "Records sent to dead-letters, by code.",
            ("stage", "code"),
            registry=registry,
        )
        self._restored = Counter(
            "tallystick_rows_restored",
            "Changelog rows read back before a partition ran.",
            stage,
            registry=registry,
        )
        self._tick_lag = Histogram(
            "tallystick_tick_lag_seconds",
            "How late a timer was when its tick was consumed.",
            stage,
            buckets=_SECONDS,
            registry=registry,
        )
        self._row_bytes = Histogram(
            "tallystick_state_row_bytes",
            "Size of written state rows.",
            stage,
            buckets=_ROW_BYTES,
            registry=registry,
        )
        self._partitions = Gauge(
            "tallystick_partitions",
            "Partitions of this worker, by condition.",
            ("stage", "condition"),
            registry=registry,
        )

    def folded(self, stage: str, records: int) -> None:
        """See LoopMetrics."""
        self._folded.labels(stage).inc(records)

    def committed(self, stage: str, seconds: float) -> None:
        """See LoopMetrics."""
        self._commit_seconds.labels(stage).observe(seconds)

    def aborted(self, stage: str, cause: str) -> None:
        """See LoopMetrics."""
        self._aborted.labels(stage, cause).inc()

    def dead_lettered(self, stage: str, code: str) -> None:
        """See LoopMetrics."""
        self._dead.labels(stage, code).inc()

    def restored(self, stage: str, partition: int, rows: int) -> None:
        """See LoopMetrics; the partition is no label, since partitions move between workers."""
        del partition
        self._restored.labels(stage).inc(rows)

    def ticked(self, stage: str, lag_ms: int) -> None:
        """See LoopMetrics."""
        self._tick_lag.labels(stage).observe(max(lag_ms, 0) / 1_000)

    def stored_row(self, stage: str, row_bytes: int) -> None:
        """See LoopMetrics."""
        self._row_bytes.labels(stage).observe(row_bytes)

    def partitions(self, stage: str, running: int, restoring: int) -> None:
        """See LoopMetrics."""
        self._partitions.labels(stage, "running").set(running)
        self._partitions.labels(stage, "restoring").set(restoring)
        if running and not restoring:
            self._on_ready()


def open_metrics(
    port: int | None, on_ready: Callable[[], None], address: str = "127.0.0.1"
) -> PrometheusMetrics:
    """Metrics, served at http://address:port/metrics where a port is given.

    `on_ready` is called whenever all assigned partitions run.
    """
    registry = CollectorRegistry()
    if port is not None:
        start_http_server(port, addr=address, registry=registry)
    return PrometheusMetrics(registry, on_ready)
