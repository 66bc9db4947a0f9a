"""Tables: from files and databases to arrays, and labelled rows back to files.

Here are the formats, the choice and encoding of columns, tables in Parquet that are opened to be
read in parts, and what is written. Reading their rows part by part is the work of ``engines``.

>>> from regimix import tables
>>> data = tables.read("rows.csv", target="price")            # doctest: +SKIP
>>> data.X, data.y, data.feature_names, data.notes            # doctest: +SKIP
>>> fit = MixedLinearRegression().fit(data.frame(), data.target())  # doctest: +SKIP
>>> tables.write_labels("labels.csv", data, fit.mixture_)     # doctest: +SKIP
>>> new = tables.read_like("new.csv", data.recipe)            # doctest: +SKIP

``docs/files.rst`` describes what a source may be, what happens to each kind of column and what is
written. Needs the extra ``cli``; PostgreSQL needs ``sql``.
"""

from regimix.data.recipe import Column, Recipe
from regimix.tables.parquet import ParquetTable, scan_like, scan_parquet
from regimix.tables.read import DataSet, from_frame, read, read_like
from regimix.tables.write import (
    WrittenFile,
    label_columns,
    write_label_parts,
    write_labels,
    write_table,
)

__all__ = [
    "Column",
    "DataSet",
    "ParquetTable",
    "Recipe",
    "WrittenFile",
    "from_frame",
    "label_columns",
    "read",
    "read_like",
    "scan_like",
    "scan_parquet",
    "write_label_parts",
    "write_labels",
    "write_table",
]
