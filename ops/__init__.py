"""What people run: the command line, brokers for development, the demo, metrics and benchmarks."""
