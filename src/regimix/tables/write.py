"""Writing tables: labelled rows, whole or not at all."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regimix.atomic import write_bytes
from regimix.errors import DataError, ParameterError
from regimix.paths import format_of_name
from regimix.tables.recipe import DataSet, need_polars

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from regimix.result.mixture import Mixture

__all__ = [
    "WrittenFile",
    "are_label_columns",
    "count_outliers",
    "gate_shares",
    "label_columns",
    "write_labels",
    "write_table",
]

# A spreadsheet takes a cell that begins so for a formula, and runs it.
FORMULA = r"^[=+\-@\t\r\n]"


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written.

    Attributes
    ----------
    path : str
    n_rows : int
        Rows of the file, as many as were read.
    n_dropped : int
        Rows in which a needed value is missing: all is blank but their key.
    n_outliers : int
        Rows that follow no regime.
    n_unknown : int
        Rows that were predicted but not assigned, because their target is missing.
    """

    path: str
    n_rows: int
    n_dropped: int = 0
    n_outliers: int = 0
    n_unknown: int = 0


def write_table(path: str | Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a CSV, TSV, Parquet, Arrow or JSON lines file; the name says which.

    The file appears whole or not at all. Text formats are compressed if the name ends in ".gz". In
    CSV and TSV, text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a
    line break) gets an apostrophe in front; numbers never do.

    Parameters
    ----------
    path : str or Path
    columns : mapping of str to array
    """
    need_polars()
    import polars as pl

    path = Path(path)
    file_format = format_of_name(path)
    compressed = path.suffix.lower() == ".gz"
    if file_format is None or (compressed and file_format in ("parquet", "arrow")):
        raise ParameterError(
            f"the name of a table must end in .csv, .tsv, .jsonl (or these and .gz), .parquet or "
            f".arrow; got {path.name!r}."
        )
    frame = pl.DataFrame({name: _plain(values) for name, values in columns.items()})
    data = _encoded(frame, file_format)
    write_bytes(path, gzip.compress(data, mtime=0) if compressed else data)


def write_labels(path: str | Path, data: DataSet, mixture: Mixture, **options: Any) -> WrittenFile:
    """Write each row's key, regime and prediction to a table; options as of ``label_columns``."""
    columns = label_columns(data, mixture, **options)
    write_table(path, columns)
    outliers, unknown = count_outliers(list(columns.values()), data.y)
    return WrittenFile(str(path), data.n_rows, 0, outliers, unknown)


def count_outliers(columns: Sequence[Any], y: Any) -> tuple[int, int]:
    """Count the rows that follow no regime, and those without a target, in columns of labels."""
    if y is None:
        return 0, 0
    regimes = columns[2]  # after key and target
    return int(np.ma.filled(regimes < 0, False).sum()), int(np.count_nonzero(~np.isfinite(y)))


def label_columns(
    data: DataSet,
    mixture: Mixture,
    *,
    labels: Any = None,
    shares: Any = None,
    each_regime: bool | None = None,
) -> dict[str, Any]:
    """Say of each row what the mixture makes of it, as columns.

    The key comes first. With a target: the target, ``regime`` (-1: outlier), ``prediction``,
    ``probability_0``, ... of each component, ``probability_outlier`` and ``outlier_score``.
    Without: ``prediction`` and ``prediction_0``, ... of each component. Where only some rows have
    a target: all of these, masked (blank in a file) where they cannot be known.

    Parameters
    ----------
    labels : array of shape (n,), optional
        The regimes, if they are known (``mixture.labels`` for the rows of the fit); default:
        ``mixture.assign``.
    shares : array of shape (n, m), optional
        Shares of the regimes for each row, where a gate knows them; default: what a gate that was
        learnt from the features says. A gate that was learnt from other columns
        (``gating_features``) needs them: ``mixture.gate.shares(Z)``.
    each_regime : bool, optional
        Whether there are predictions of each component beside a target; default: where only some
        rows have one.
    """
    X, y, each = data.X, data.y, range(mixture.n_components)
    shares = gate_shares(mixture, X) if shares is None else np.asarray(shares)
    columns: dict[str, Any] = {data.key_name: data.keys}
    prediction = {"prediction": mixture.predict(X, shares)}
    means = mixture.predict_components(X)
    predictions = {f"prediction_{j}": means[:, j] for j in each}
    if y is None:
        return _joined(columns, prediction | predictions)
    known = np.isfinite(y)
    parts = (None if values is None else np.asarray(values)[known] for values in (shares, labels))
    judged = _judged(mixture, X[known], y[known], *parts)
    spread = {name: _spread(values, known) for name, values in judged.items()}
    columns = _joined(columns, {data.target_name: _spread(y[known], known)})
    regime = {"regime": spread.pop("regime")}
    if each_regime is None:
        each_regime = not known.all()
    return _joined(columns, regime | prediction | spread | (predictions if each_regime else {}))


def are_label_columns(names: Sequence[str]) -> bool:
    """Whether columns have the names, in the order, that ``label_columns`` gives them."""
    plain = [name.rstrip("_") for name in names]  # as they were before they had to be free
    predicted = [name for name in plain[1:] if re.fullmatch(r"prediction_\d+", name)]
    each = [f"prediction_{j}" for j in range(len(predicted))]
    if each and plain[1:] == ["prediction", *each]:
        return True
    m = sum(re.fullmatch(r"probability_\d+", name) is not None for name in plain[2:])
    probabilities = [f"probability_{j}" for j in range(m)]
    judged = ["regime", "prediction", *probabilities, "probability_outlier", "outlier_score"]
    return plain[2:] in (judged, [*judged, *(f"prediction_{j}" for j in range(m))])


def gate_shares(mixture: Mixture, X: Any) -> NDArray[np.float64] | None:
    """Return the shares that a gate gives each row; None without a gate.

    Raises
    ------
    DataError
        The gate was learnt from columns that are not those of X: leaving it out in silence would
        answer another question than the model does.
    """
    gate = mixture.gate
    if gate is None:
        return None
    if not gate.from_features:
        raise DataError(
            "the model's gate was learnt from columns that are not among its features "
            f"({', '.join(gate.names)}), so its answers for rows need them: in Python, pass "
            "shares=mixture.gate.shares(Z), where Z holds these columns of the same rows."
        )
    return np.asarray(gate.shares(X))


def _judged(mixture: Mixture, X: Any, y: Any, shares: Any, labels: Any) -> dict[str, Any]:
    """Say what the mixture makes of rows with a target."""
    if not len(y):
        # Nothing to ask, but the columns should have their types.
        probabilities = np.empty((0, mixture.n_components + 1))
        labels, scores = np.empty(0, dtype=np.int64), np.empty(0)
    else:
        probabilities = mixture.responsibilities(X, y, shares)
        scores = mixture.outlier_score(X, y, shares)
        labels = mixture.assign(X, y, shares) if labels is None else labels
    return {
        "regime": labels,
        **{f"probability_{j}": probabilities[:, j] for j in range(mixture.n_components)},
        "probability_outlier": probabilities[:, -1],
        "outlier_score": scores,
    }


def _spread(values: Any, known: NDArray[np.bool_]) -> Any:
    """Put values into the rows that they are known for; the others are masked."""
    if known.all():
        return values
    whole = np.zeros(known.shape, dtype=np.asarray(values).dtype)
    whole[known] = values
    return np.ma.MaskedArray(whole, mask=~known)


def _joined(columns: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add columns under names that are still free: a user's column may be called "regime"."""
    joined = dict(columns)
    for name, values in more.items():
        free = name
        while free in joined:
            free += "_"
        joined[free] = values
    return joined


def _plain(values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        import polars as pl

        return pl.Series(values.filled(0)).set(pl.Series(np.ma.getmaskarray(values)), None)
    array = np.asarray(values)
    return array.tolist() if array.dtype == object else np.ascontiguousarray(array)


def _encoded(frame: pl.DataFrame, file_format: str) -> bytes:
    buffer = io.BytesIO()
    if file_format == "parquet":
        frame.write_parquet(buffer)
    elif file_format == "arrow":
        frame.write_ipc(buffer)
    elif file_format == "jsonl":
        frame.write_ndjson(buffer)
    else:
        _harmless(frame).write_csv(buffer, separator="\t" if file_format == "tsv" else ",")
    return buffer.getvalue()


def _harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text, also in the header, that would run as a formula."""
    import polars as pl

    frame = frame.with_columns(pl.col(pl.String).str.replace(FORMULA, "'${0}"))
    names = pl.Series(frame.columns, dtype=pl.String).str.replace(FORMULA, "'${0}")
    return frame.rename(dict(zip(frame.columns, names, strict=True)))
