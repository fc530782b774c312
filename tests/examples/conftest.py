from tests.e2e.conftest import folder

__all__ = ["folder"]
