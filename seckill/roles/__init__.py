"""What stands behind the API, put together from the use cases. A role is a module, so that a process loads its own."""
