"""`python -m ops.bench`: every benchmark, one after the other."""

from ops.bench.commits import main

if __name__ == "__main__":
    main()
