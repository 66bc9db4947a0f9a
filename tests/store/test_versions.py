"""Files of every version that was ever written stay readable."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regimix import store
from regimix.errors import ModelFileError
from regimix.store import load, open_model, save
from tests.store.examples import RECIPE, differences, example, first_example, pack, unpack

# Each was written once, by the code of that version, and never again:
# save(example(), path, recipe=RECIPE)
FILES = {number: Path(__file__).parent / "data" / f"version-{number}.regimix" for number in (1, 2)}
OLDEST = FILES[1]
HELD = {1: first_example, 2: lambda: replace(example(), rivals=(), resampled=None)}


@pytest.mark.parametrize("number", FILES)
def test_every_version_stays_readable(number):
    opened = open_model(FILES[number])
    assert opened.version == number
    assert opened.recipe == RECIPE
    assert differences(opened.mixture, HELD[number]()) == []


def test_there_is_a_file_of_every_version():
    assert list(FILES) == list(range(1, store.VERSION + 1))


def first_version(tmp_path, settings, **model):
    """Read a file of version 1 with other settings and fields."""
    parts = unpack(OLDEST.read_bytes())
    manifest = json.loads(parts["manifest.json"])
    manifest["model"].update(model)
    manifest["model"]["settings"].update(settings)
    path = tmp_path / "m"
    path.write_bytes(pack({**parts, "manifest.json": json.dumps(manifest).encode()}))
    return load(path)


@pytest.mark.parametrize("search", ["auto", "joint", "net"])
@pytest.mark.parametrize("n_components", [None, 2])
def test_the_share_that_was_kept_says_how_many_are_outliers(tmp_path, search, n_components):
    """To keep all rows was to sort them into regimes, but in Algorithm 2."""
    asked = {"search": search, "n_components": n_components}
    for keep, outliers in ((None, None), (0.9, 0.1), (0.3, 0.7)):
        settings = first_version(tmp_path, {**asked, "keep": keep}).settings
        assert (settings.search, settings.n_components) == (search, n_components)
        assert settings.outliers == outliers
    mixture = first_version(tmp_path, {**asked, "keep": 1.0})
    settings = mixture.settings
    if search == "net":
        assert (settings.search, settings.outliers) == ("net", 0.0)
    else:
        assert (settings.search, settings.n_components, settings.outliers) == ("partition", 2, None)
    assert mixture.fitted_by_label


@pytest.mark.parametrize("n_components", [None, 2])
@pytest.mark.parametrize(("evidence", "nothing"), [(-1.0, True), (0.5, False), (50.0, False)])
def test_what_was_a_relation_stays_one(tmp_path, n_components, evidence, nothing):
    asked = {"search": "auto", "n_components": n_components}
    mixture = first_version(tmp_path, asked, evidence=evidence)
    assert mixture.found_nothing is nothing
    if evidence == 50.0:
        assert mixture.evidence == evidence


def test_a_file_without_the_newest_optional_fields_stays_readable(tmp_path):
    """A field that is added with a default needs no new version."""
    parts = unpack(OLDEST.read_bytes())
    manifest = json.loads(parts["manifest.json"])
    del manifest["model"]["target_name"]
    path = tmp_path / "m"
    path.write_bytes(pack({**parts, "manifest.json": json.dumps(manifest).encode()}))
    assert load(path).target_name == "y"


def to_three(manifest, arrays):
    """Call a field and an array by other names."""
    model = dict(manifest["model"])
    model["target"] = model.pop("target_name")
    slopes = arrays.pop("coef")
    return {**manifest, "model": model}, {**arrays, "slopes": slopes}


def to_four(manifest, arrays):
    """Call them by their old names again, with a mark."""
    model = dict(manifest["model"])
    model["target_name"] = model.pop("target") + "!"
    slopes = arrays.pop("slopes")
    return {**manifest, "model": model}, {**arrays, "coef": slopes + 1}


def test_old_files_are_brought_up_to_date_step_by_step(monkeypatch):
    monkeypatch.setattr(store, "VERSION", 4)
    migrations = {**store.MIGRATIONS, 2: to_three, 3: to_four}
    monkeypatch.setattr(store, "MIGRATIONS", migrations)
    opened = open_model(OLDEST)
    assert opened.version == 1
    assert opened.mixture.target_name == example().target_name + "!"
    assert opened.mixture.settings.outliers == 0.1
    assert np.array_equal(opened.mixture.coef, example().coef + 1)


def test_an_old_file_that_is_none_is_refused(tmp_path):
    parts = unpack(OLDEST.read_bytes())
    manifest = json.loads(parts["manifest.json"]) | {"model": []}
    path = tmp_path / "m"
    path.write_bytes(pack({**parts, "manifest.json": json.dumps(manifest).encode()}))
    with pytest.raises(ModelFileError, match="manifest is not that of version 1"):
        load(path)


def test_every_older_version_has_its_migration():
    assert sorted(store.MIGRATIONS) == list(range(1, store.VERSION))


def test_a_newer_file_says_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "m.regimix"
    with monkeypatch.context() as patch:
        patch.setattr(store, "VERSION", 3)
        save(example(), path)
    with pytest.raises(
        ModelFileError, match=r"of version 3 .* reads versions up to 2\. Update regimix"
    ):
        load(path)
