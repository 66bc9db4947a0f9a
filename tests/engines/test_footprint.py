"""Tables larger than the memory allowed: a fit takes a stated amount, whatever is on the disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.engines.footprint import write_table
from tests.patience import ENOUGH

N_ROWS, N_FEATURES = 800_000, 49
TABLE_BYTES = 8 * N_ROWS * (N_FEATURES + 1)
# An eighth of the table, 40 MB. The labels and their like (8 bytes a row each) take 13 of it; what
# is remembered of the rows (an excerpt, and the draw that it is taken from), the search's small
# sample, parts on their way (three of 1.6 MB) and chunks the rest: none of it grows with the table.
BUDGET = TABLE_BYTES // 8


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("footprint") / "table.npy"
    write_table(path, N_ROWS, N_FEATURES)
    yield path
    path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", ["map", "parts"])
def test_a_fit_of_a_table_on_disk_stays_within_an_eighth_of_it(table, how):
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.engines.footprint", str(table), how],
        cwd=root,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=ENOUGH,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["labelled"] == N_ROWS
    assert said["n_components"] == 2
    truth = np.random.default_rng(1).standard_normal((2, N_FEATURES))
    found = np.array(said["coef"])
    apart = np.abs(found[:, None] - truth[None]).max(axis=2).min(axis=0)
    assert apart.max() < 0.01
    assert said["extra"] < BUDGET, f"{said['extra'] / 1e6:.1f} MB of {BUDGET / 1e6:.1f}"
    # More than nothing: something was measured.
    assert said["extra"] > 8 * N_ROWS
