"""What an answer, or its absence, says of the write: tables, pure and without a wire.

The rule behind every row: *not executed* only where the request surely took no effect and may
go out again; *rejected* only where the target surely refused it for good; everything else is
*unknown*, which is never retried blindly (DESIGN.md, steps 4 and 5). A contract's `errors`
overrides any row of the status table. Sources: RFC 9110 (statuses), RFC 6585 (428, 429, 431),
RFC 8470 (425), draft-ietf-httpapi-idempotency-key-header-07 (409 and 422 under a key).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tallystick.contracts import Answer
from tallystick.records import AttemptOutcome as O
from tallystick.records import ErrorClass as C
from tallystick.records import KeyStyle


class WireFault(StrEnum):
    """How a call can end without a status; the first five before anything was sent."""

    REFUSED = "connection_refused"
    UNRESOLVED = "name_not_resolved"
    UNREACHABLE = "unreachable"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS = "tls_failed"
    TIMEOUT = "timeout"
    RESET = "connection_reset"
    DISCONNECTED = "disconnected"
    GARBLED = "garbled_response"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An attempt's outcome and who would have to act."""

    outcome: O
    error_class: C


WIRE_VERDICTS: Mapping[WireFault, Verdict] = MappingProxyType(
    {
        WireFault.REFUSED: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
        WireFault.UNRESOLVED: Verdict(O.NOT_EXECUTED, C.SETUP),
        WireFault.UNREACHABLE: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
        WireFault.CONNECT_TIMEOUT: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
        WireFault.TLS: Verdict(O.NOT_EXECUTED, C.SETUP),
        WireFault.TIMEOUT: Verdict(O.UNKNOWN, C.TRANSIENT),
        WireFault.RESET: Verdict(O.UNKNOWN, C.TRANSIENT),
        WireFault.DISCONNECTED: Verdict(O.UNKNOWN, C.TRANSIENT),
        WireFault.GARBLED: Verdict(O.UNKNOWN, C.TRANSIENT),
    }
)

STATUS_VERDICTS: Mapping[int, Verdict] = MappingProxyType(
    {
        # Accepted for later: not yet an effect, and it may never become one.
        202: Verdict(O.UNKNOWN, C.NONE),
        # Several outcomes in one body, which this target does not read.
        207: Verdict(O.UNKNOWN, C.NONE),
        # The method must be kept, so the request was not acted on here: base_url is wrong.
        307: Verdict(O.REJECTED, C.SETUP),
        308: Verdict(O.REJECTED, C.SETUP),
        400: Verdict(O.REJECTED, C.SCHEMA),
        401: Verdict(O.REJECTED, C.PERMISSION),
        402: Verdict(O.REJECTED, C.BUSINESS),
        403: Verdict(O.REJECTED, C.PERMISSION),
        404: Verdict(O.REJECTED, C.BUSINESS),
        405: Verdict(O.REJECTED, C.SETUP),
        407: Verdict(O.REJECTED, C.SETUP),
        # The server gave up waiting for the request, or a proxy for the server: both are seen.
        408: Verdict(O.UNKNOWN, C.TRANSIENT),
        409: Verdict(O.EXISTS, C.BUSINESS),
        410: Verdict(O.REJECTED, C.BUSINESS),
        412: Verdict(O.REJECTED, C.BUSINESS),
        423: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
        424: Verdict(O.REJECTED, C.BUSINESS),
        425: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
        426: Verdict(O.REJECTED, C.SETUP),
        429: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
        451: Verdict(O.REJECTED, C.PERMISSION),
        # A proxy's word for "the client went away": the server behind it may have gone on.
        499: Verdict(O.UNKNOWN, C.TRANSIENT),
        503: Verdict(O.NOT_EXECUTED, C.TRANSIENT),
    }
)
"""Statuses that differ from their family."""

FAMILY_VERDICTS: Mapping[int, Verdict] = MappingProxyType(
    {
        2: Verdict(O.APPLIED, C.NONE),
        # "See other" is also how a successful write is answered, so a redirect proves nothing.
        3: Verdict(O.UNKNOWN, C.SETUP),
        4: Verdict(O.REJECTED, C.SCHEMA),
        5: Verdict(O.UNKNOWN, C.TRANSIENT),
    }
)
"""The rest, by the status's first digit."""

KEYED_CONFLICT = Verdict(O.UNKNOWN, C.TRANSIENT)
"""409 where a key was sent: the first request under this key is still being worked on (draft
07, section 2.7). The same key goes out again until it is acknowledged; "exists" would end in a
read that may come before the effect. A target whose 409 means something else says so in
`errors`."""

_ANSWERED_CLASS: Mapping[Answer, C] = MappingProxyType(
    {
        Answer.APPLIED: C.NONE,
        Answer.EXISTS: C.BUSINESS,
        Answer.EXISTS_DIFFERENT: C.BUSINESS,
        Answer.REJECTED: C.BUSINESS,
        Answer.NOT_EXECUTED: C.TRANSIENT,
        Answer.UNKNOWN: C.TRANSIENT,
    }
)
"""Who acts, where a contract overrides the outcome and the table has another one."""


def classify_fault(fault: WireFault) -> Verdict:
    """The verdict on a call that got no status."""
    return WIRE_VERDICTS[fault]


def classify_status(status: int, key_style: KeyStyle, errors: Mapping[str, Answer]) -> Verdict:
    """The verdict on a final status; the contract's own word comes first."""
    usual = _usual(status, key_style)
    declared = errors.get(str(status))
    if declared is None:
        return usual
    outcome = O(declared.value)
    same = outcome is usual.outcome
    return Verdict(outcome, usual.error_class if same else _ANSWERED_CLASS[declared])


def _usual(status: int, key_style: KeyStyle) -> Verdict:
    if status == 409 and key_style in (KeyStyle.HEADER, KeyStyle.FIELD):
        return KEYED_CONFLICT
    verdict = STATUS_VERDICTS.get(status)
    # Statuses outside 200-599 are no HTTP (RFC 9110, section 15): as unknown as a garbled answer.
    return verdict or FAMILY_VERDICTS.get(status // 100, WIRE_VERDICTS[WireFault.GARBLED])
