"""A mixture as one HTML page: self-contained, readable by people, safe with any data."""

from regimix.report.page import render, write

__all__ = ["render", "write"]
