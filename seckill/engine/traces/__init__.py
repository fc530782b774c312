"""Variants of the use cases that record how long each step took. They are only loaded where traces are on."""
