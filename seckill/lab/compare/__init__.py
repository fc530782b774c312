"""The ladder: every design that tutorials teach, on the same servers, under the same rush, beside the engine."""
