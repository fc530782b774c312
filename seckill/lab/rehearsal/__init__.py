"""Rehearsals on the real deployment: a marked sale, and a crowd that grows until some part is full."""
