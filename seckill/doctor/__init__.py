"""What can be told of the servers by asking them: what they are, and what about them should be changed."""
