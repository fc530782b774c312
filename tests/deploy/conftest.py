from tests.api.conftest import engine, node, served, settings  # noqa: F401 (a node, as the tests of the API have it)
