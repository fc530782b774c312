"""Fault runs: real processes under load, faults on a schedule, a continuous audit, and a report that says what held."""
