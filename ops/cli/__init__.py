"""The `tallystick` command line."""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; imports are made here so that `import ops.cli` costs nothing."""
    from ops.cli.app import app
    from ops.cli.common import run_app

    run_app(app, "tallystick")
