"""The contracts that this process serves, by hash, each with its open target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectors.targets import Target, open_target
from tallystick.contracts import Contract
from tallystick.errors import ContractError
from tallystick.keys import policy_hash


class ContractBook:
    """Holds every contract's target; a plan that froze another version finds nothing here."""

    def __init__(self) -> None:
        self._targets: dict[str, Target] = {}
        self._policies: dict[tuple[str, str], str] = {}
        self.names: list[str] = []
        self.concurrency_max = 0

    @classmethod
    async def open(
        cls, contracts: Sequence[Contract], env: Mapping[str, str], *, served_by: str
    ) -> ContractBook:
        """Open every contract's target in the event loop that will call it.

        Raises ContractError for one that is given twice, OperatorError for an unset secret; what
        was opened before it is closed again.
        """
        book = cls()
        try:
            for contract in contracts:
                book._add(contract, env, served_by)
        except BaseException:
            await book.close()
            raise
        return book

    def _add(self, contract: Contract, env: Mapping[str, str], served_by: str) -> None:
        if contract.hash in self._targets:
            raise ContractError(
                "is given twice", where=f"contract {contract.name}", fix="name it once"
            )
        self._targets[contract.hash] = open_target(contract, env, reader=served_by)
        self.names.append(f"{contract.name}@{contract.ref.version}")
        self.concurrency_max += contract.document.concurrency_max
        for tool, policy in contract.policies().items():
            self._policies[contract.hash, tool] = policy_hash(policy)

    def target(self, contract_hash: str) -> Target | None:
        """The open target of a contract, or None if this process does not serve it."""
        return self._targets.get(contract_hash)

    def policy_hash(self, contract_hash: str, tool: str) -> str | None:
        """The hash of a tool's policy as this process read it from the file."""
        return self._policies.get((contract_hash, tool))

    async def close(self) -> None:
        """Give every connection back."""
        for target in self._targets.values():
            await target.close()
