"""How far the engine is from what the machine can do, and from the last step of the tutorials."""
