"""Tables in Parquet files for tests, and a reader that kills its worker once."""

import hashlib
import os
import signal
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from regimix.engines.parquet import ParquetReader
from regimix.synth import make_mlrc

__all__ = ["DeadlyReader", "contents", "mixed_frame", "write_files"]


def mixed_frame(n_rows=6000, *, gaps=True):
    """Three regimes in columns of several types, with all that is missing in real tables."""
    made = make_mlrc(
        n_rows, 4, 3, weights=[5, 3, 2], corruption=0.05, noise=0.2, separation=1.0, random_state=3
    )
    frame = pl.DataFrame({f"x{i}": column for i, column in enumerate(made.X.T)})
    row = pl.int_range(n_rows)
    frame = frame.with_columns(
        pl.col("x1").cast(pl.Float32),
        whole=(10 * pl.col("x0")).cast(pl.Int32),
        flag=pl.col("x2") > 0,
        id=pl.format("r{}", row),
        same=pl.lit(7),
        y=pl.Series(made.y),
    )
    if not gaps:
        return frame
    return frame.with_columns(
        x0=pl.when(row % 997 == 5).then(None).otherwise("x0"),
        x3=pl.when(row % 1009 == 7).then(np.inf).otherwise("x3"),
        whole=pl.when(row % 1013 == 11).then(None).otherwise("whole"),
        flag=pl.when(row % 1019 == 13).then(None).otherwise("flag"),
        y=pl.when(row % 1021 == 17).then(np.nan).otherwise("y"),
    )


def write_files(folder, frame, n_files=3, group_rows=500):
    """Write a frame to several files of several row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = np.linspace(0, frame.height, n_files + 1).astype(int)
    for i, (first, stop) in enumerate(pairwise(cuts)):
        frame[first:stop].write_parquet(folder / f"part.{i}.parquet", row_group_size=group_rows)
    return folder


def contents(folder):
    """Name and fingerprint of every file below a folder, hidden ones too."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@dataclass(frozen=True)
class DeadlyReader(ParquetReader):
    """Kills the process in the middle of a file, once; ``mark`` is a file that says so."""

    mark: str = ""

    def labelled(self, span, batch_rows):
        for batch in super().labelled(span, batch_rows):
            if self.mark and not Path(self.mark).exists():
                Path(self.mark).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch
