"""Traces, told to a collector by OpenTelemetry's protocol."""
