"""Install each file of dist/ into an environment of its own, and use it there as a newcomer would.

``python .ci/smoke.py`` ends with an error if a file holds too much or too little, does not install,
or does not find the two regimes of the tone data. ``--cli`` also installs the command line.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_STEPS = """
import importlib.metadata, pathlib, regimix
from regimix import MixedLinearRegression, TrimmedRegressor, load, save
from regimix.datasets import load_calls, load_tone

assert regimix.__version__ == importlib.metadata.version("regimix") == {version!r}
home = pathlib.Path(regimix.__file__).parent
assert (home / "py.typed").exists()
assert not home.is_relative_to({root!r}), home
tone, calls = load_tone(), load_calls()
model = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
assert model.n_components_ == 2, model.mixture_
save(model.mixture_, "tone.regimix")
assert (load("tone.regimix").coef == model.coef_).all()
assert TrimmedRegressor(random_state=0).fit(calls.X, calls.y).inlier_mask_.sum() == 16
print("regimix", regimix.__version__, "finds 2 regimes")
"""


def names(path: Path) -> list[str]:
    """List the files of a wheel or an archive."""
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).namelist()
    return [name.partition("/")[2] for name in tarfile.open(path).getnames()]


def check_contents(path: Path) -> None:
    """Check that a wheel holds only the package, and that an archive can be built and tested."""
    held = names(path)
    tops = {name.split("/")[0] for name in held if name}
    if path.suffix == ".whl":
        assert all(top == "regimix" or top.endswith(".dist-info") for top in tops), tops
        assert "regimix/py.typed" in held
        assert any(name.endswith("tone.csv") for name in held)
    else:
        assert {"src", "tests", "docs", "LICENSE", "README.md", "CITATION.cff"} <= tops, tops


def try_out(path: Path, version: str, *, cli: bool) -> None:
    """Install the file, without this repository in sight, and run the first steps."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        what = f"{path}[cli]" if cli else str(path)
        install = ["-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        pins = ["-c", str(ROOT / "constraints.txt")]
        subprocess.run([python, *install, *pins, what], check=True, cwd=folder)
        code = FIRST_STEPS.format(version=version, root=str(ROOT))
        subprocess.run([python, "-W", "error", "-c", code], check=True, cwd=folder)
        if cli:
            command = str(Path(folder) / "bin" / "regimix")
            subprocess.run([command, "demo"], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def main() -> None:
    """Try every file of dist/."""
    files = sorted((ROOT / "dist").glob("regimix-*"))
    if len(files) != 2:
        sys.exit(f"dist/ should hold a wheel and an archive; it holds {[p.name for p in files]}.")
    version = files[0].name.split("-")[1]
    for path in files:
        check_contents(path)
        try_out(path, version, cli="--cli" in sys.argv and path.suffix == ".whl")
        print(f"{path.name}: installed and tried")


if __name__ == "__main__":
    main()
