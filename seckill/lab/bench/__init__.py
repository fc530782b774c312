"""Benchmarks: compare the engine with what the machine can do, and with the last step of the tutorials."""
