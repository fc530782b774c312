"""What asking the servers reveals: what they are, and what should be changed about them."""
