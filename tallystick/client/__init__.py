"""The client: submit a plan, get a receipt or a partial record, or stop waiting and say so."""

from tallystick.client.aio import AsyncTally
from tallystick.client.sync import Tally
from tallystick.client.waiting import Pending, Progress

__all__ = ["AsyncTally", "Pending", "Progress", "Tally"]
