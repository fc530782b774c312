"""What runs behind the API, built from the use cases. A role is a module, so that a process loads only its own."""
