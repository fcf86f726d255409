"""The outside world: targets, agent runtimes and sinks; knows nothing of how folds decide."""
