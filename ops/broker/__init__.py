"""Brokers for development and tests: an outside one, Apache Kafka itself, Docker, or embedded.

Everything here listens on 127.0.0.1 only. Production brokers are not started from here.
"""

from ops.broker.choose import start, start_first
from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState

__all__ = ["BrokerHandle", "BrokerKind", "BrokerState", "start", "start_first"]
