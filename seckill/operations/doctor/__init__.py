"""Examines the servers: what they are, and what should be changed about them."""
