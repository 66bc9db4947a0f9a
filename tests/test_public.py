"""The public surface: what it lists is there, and asking for little loads little."""

import subprocess
import sys
from importlib.resources import files

import pytest

import regimix


def test_all_is_sorted_and_has_no_double():
    assert list(regimix.__all__) == sorted(set(regimix.__all__))


@pytest.mark.parametrize("name", regimix.__all__)
def test_every_public_name_is_there(name):
    assert getattr(regimix, name) is not None


def test_dir_is_the_public_surface():
    assert dir(regimix) == sorted(regimix.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'mixtures'"):
        _ = regimix.mixtures


def test_the_package_says_that_it_is_typed():
    assert files("regimix").joinpath("py.typed").is_file()


def loaded_after(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after `statement`."""
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    ["import regimix", "import regimix; regimix.__version__", "import regimix; regimix.errors"],
)
def test_import_alone_is_light(statement):
    assert not loaded_after(statement) & {"sklearn", "scipy", "numpy", "matplotlib", "pandas"}


def test_data_synth_and_metrics_do_not_load_scikit_learn():
    loaded = loaded_after("from regimix import datasets, metrics, synth")
    assert not loaded & {"sklearn", "matplotlib", "pandas", "polars"}
