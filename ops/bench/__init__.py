"""Benchmarks: figures with the command that made them, as ratios to a bare loop in the same run."""
