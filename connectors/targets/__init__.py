"""Targets: the systems that effects are written to, each behind a contract."""

from connectors.targets.base import CallResult, Target
from connectors.targets.http import HttpTarget, open_target

__all__ = ["CallResult", "HttpTarget", "Target", "open_target"]
