"""A flash-sale engine that sells exactly the stock, loses no accepted order, and lets anyone check it."""

__version__ = "0.1.0"
