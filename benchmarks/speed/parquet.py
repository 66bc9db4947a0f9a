"""Parquet datasets for the benchmarks, written once and kept in ``benchmarks/.cache``."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import Floats, mixed_blocks
from benchmarks.speed.race import say

CACHE = Path(__file__).parents[1] / ".cache" / "parquet"
TRUTH = "truth.json"  # written last: a folder that has it is complete
VERSION = 1  # of the data: raise it when they are drawn differently


@dataclass(frozen=True)
class Dataset:
    """Parquet files of one row group each, and the models (m, d + 1) behind their rows."""

    files: str
    features: list[str]
    theta: Floats


def dataset(rows: int, columns: int, partitions: int) -> Dataset:
    """Return a dataset of several models, after writing it the first time."""
    folder = CACHE / f"{rows}x{columns}-in-{partitions}-v{VERSION}"
    features = [f"x{j}" for j in range(columns)]
    if not (folder / TRUTH).exists():
        say(f"writing {rows:,} × {columns} to Parquet (once)")
        shutil.rmtree(folder, ignore_errors=True)
        _write(folder, rows, features, partitions)
    theta = np.array(json.loads((folder / TRUTH).read_text(encoding="utf-8")))
    return Dataset(str(folder / "*.parquet"), features, theta)


def _write(folder: Path, rows: int, features: list[str], partitions: int) -> None:
    """Write one partition after the other, so that memory holds one at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    size = -(-rows // partitions)
    blocks = mixed_blocks(rows, len(features), seed=0, block_rows=size)
    for number, block in enumerate(blocks):
        columns = dict(zip(features, block.X.T, strict=True))
        table = pa.table({**columns, "y": block.y})
        pq.write_table(table, folder / f"part-{number:03}.parquet", row_group_size=size)
    (folder / TRUTH).write_text(json.dumps(block.theta.tolist()), encoding="utf-8")
