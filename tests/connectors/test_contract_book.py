"""Contracts of one process: found by hash, opened together or not at all."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path

import pytest

from connectors.contract_book import ContractBook
from connectors.contract_file import load_contract, read_contract
from tallystick.errors import ContractError, OperatorError
from tallystick.keys import policy_hash

SAMPLES = Path(__file__).parents[2] / "ops" / "demo" / "contracts"
ENV = {"CASES_URL": "http://127.0.0.1:9"}


def test_a_contract_is_found_by_its_hash_and_its_policies_by_tool() -> None:
    contract = load_contract(SAMPLES / "cases-keyed.yaml")

    async def look() -> None:
        book = await ContractBook.open([contract], ENV, served_by="d0")
        assert book.target(contract.hash) is not None
        assert book.target("0" * 64) is None
        wanted = policy_hash(contract.policy("create_case"))
        assert book.policy_hash(contract.hash, "create_case") == wanted
        assert book.names == ["cases@1"]
        await book.close()

    asyncio.run(look())


def test_a_contract_that_cannot_be_opened_leaves_no_session_behind() -> None:
    good = load_contract(SAMPLES / "cases-keyed.yaml")
    raw = (SAMPLES / "cases-natural.yaml").read_text()
    secret = read_contract(f"{raw}auth: {{kind: bearer, env: NOT_SET_ANYWHERE}}\n")

    async def fail() -> None:
        with pytest.raises(OperatorError, match="NOT_SET_ANYWHERE"):
            await ContractBook.open([good, secret], ENV, served_by="d0")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(fail())
        gc.collect()


def test_a_contract_given_twice_is_refused() -> None:
    contract = load_contract(SAMPLES / "cases-keyed.yaml")

    async def fail() -> None:
        with pytest.raises(ContractError, match="given twice"):
            await ContractBook.open([contract, contract], ENV, served_by="d0")

    asyncio.run(fail())
