"""The `tallystick` command line."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; imports are made here so that `import ops.cli` costs nothing."""
    try:
        from ops.cli.app import app
        from ops.cli.process import run_app
    except KeyboardInterrupt:  # pressed before anything was begun
        sys.exit(130)
    run_app(app, "tallystick")
