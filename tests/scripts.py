"""Code of pages and examples, run as a script is, without a start of Python for each."""

import runpy
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

__all__ = ["run_code", "run_file"]


def run_file(path: Path, *, strict: bool = True) -> str:
    """Run a script, with warnings as errors if it is to be strict; return what it prints."""
    backend = mpl.get_backend()
    # Agg warns when a figure is shown; this one does not.
    plt.switch_backend("svg")
    try:
        with mpl.rc_context(), warnings.catch_warnings(), redirect_stdout(StringIO()) as printed:
            warnings.simplefilter("error" if strict else "ignore")
            runpy.run_path(str(path), run_name="__main__")
    finally:
        plt.close("all")
        plt.switch_backend(backend)
    return printed.getvalue()


def run_code(code: str, folder: Path, *, strict: bool = True) -> str:
    """Run code as a script of a folder; see ``run_file``."""
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    return run_file(script, strict=strict)
