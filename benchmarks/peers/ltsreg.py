"""R's ``robustbase::ltsReg``, the reference implementation of FAST-LTS."""

import shutil
from pathlib import Path

from benchmarks.peers.worker import PeerMissingError, Worker

HOW_TO_GET = "missing here: `apt-get install r-base-core r-cran-robustbase`"


def ltsreg(*, distances: bool) -> Worker:
    """Start R; ``distances`` also asks for the robust distances that R adds by default."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise PeerMissingError(HOW_TO_GET)
    script = Path(__file__).with_name("ltsreg_worker.R")
    return Worker([rscript, str(script), str(distances).upper()], HOW_TO_GET)


def rows_kept(rows: int, columns: int) -> int:
    """Count the rows that ``ltsReg(alpha = .5)`` keeps when it fits an intercept."""
    return (rows + columns + 1 + 1) // 2
