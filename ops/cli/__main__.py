"""`python -m ops.cli`: the same as `tallystick`."""

from ops.cli import main

if __name__ == "__main__":
    main()
