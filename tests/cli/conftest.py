"""What the tests of the command line share: a table with three regimes, and a way to run."""

import json
from dataclasses import dataclass

import pytest

from regimix.cli import main
from regimix.synth import make_mlrc
from regimix.tables import write_table


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def summary(self):
        return json.loads(self.out)


@pytest.fixture
def regimix(capsys, monkeypatch, tmp_path):
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ran(int(code), out, err)

    return run


@pytest.fixture(scope="session")
def data():
    return make_mlrc(
        600, 3, 2, weights=[6, 4], corruption=0.05, noise=0.1, separation=1.0, random_state=0
    )


@pytest.fixture
def table(tmp_path, data):
    """Two regimes in 600 rows of a CSV file, 30 rows wrong; ``id`` names the rows."""
    columns = {f"x{i}": column for i, column in enumerate(data.X.T)}
    ids = [f"id{i}" for i in range(len(data.y))]
    write_table(tmp_path / "rows.csv", {"id": ids, **columns, "y": data.y})
    return tmp_path / "rows.csv"
