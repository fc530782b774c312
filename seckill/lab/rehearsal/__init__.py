"""A rehearsal on the real deployment: a marked sale, a crowd that grows until something is full, and what that was."""
