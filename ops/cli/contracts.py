"""`tallystick contracts`: check contract files, and print the JSON Schema of their format."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from connectors.contract_file import load_contract
from ops.cli.common import EXIT_HELP, Json, guarded, out, pretty, print_json
from tallystick.contract_advice import advise
from tallystick.contracts import contract_schema
from tallystick.keys import policy_hash

app = typer.Typer(
    name="contracts",
    help="Contract files: what a target's owner states.",
    epilog=EXIT_HELP,
    no_args_is_help=True,
)


@app.command("check", epilog=EXIT_HELP)
def check(
    file: Annotated[Path, typer.Argument(metavar="CONTRACT.yaml", help="The contract file.")],
    as_json: Json = False,
) -> None:
    """Validate a contract, print its hash, and name what it leaves open.

    Examples:

    ```sh
    tallystick contracts check cases.yaml
    ```
    """
    contract = guarded(lambda: load_contract(file), as_json=as_json)
    advice = advise(contract)
    if as_json:
        policies = {name: policy_hash(each) for name, each in contract.policies().items()}
        print_json(
            {
                "name": contract.name,
                "version": contract.ref.version,
                "hash": contract.hash,
                "policies": policies,
                "advice": [asdict(each) for each in advice],
            }
        )
        return
    out.print(f"[bold green]valid[/] {contract.name} {contract.ref.version} {contract.hash}")
    for each in advice:
        out.print("[yellow]note[/] ", end="")
        out.print(str(each), markup=False)


@app.command("schema", epilog=EXIT_HELP)
def schema() -> None:
    """Print the JSON Schema of the contract format, for editors and other languages.

    Examples:

    ```sh
    tallystick contracts schema > contract.schema.json
    ```
    """
    out.print(pretty(contract_schema()), markup=False)
