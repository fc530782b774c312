"""Traces, sent to a collector with OpenTelemetry's protocol."""
