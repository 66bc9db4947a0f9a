"""A mixture and its rows as one HTML page, and as the card at the end of a notebook's cell.

The page is self-contained and safe with any data; its numbers and words are those of
``regimix.result.answer``. Its charts are drawn here as SVG, because the page must follow the
reader's colours and screen, and must not need matplotlib. Plots for papers are in
``regimix.plots``.
"""

from regimix.report.page import render, write

__all__ = ["render", "write"]
