"""Files of every version that was ever written stay readable."""

import json
from pathlib import Path

import numpy as np
import pytest

from regimix.errors import ModelFileError
from regimix.store import document, load, open_model, save
from regimix.store.archive import pack, unpack
from tests.store.examples import RECIPE, differences, example

# Written once, by the code of that version, and never again:
# save(example(), OLDEST, recipe=RECIPE)
OLDEST = Path(__file__).parent / "data" / "version-1.regimix"


def test_the_first_version_stays_readable():
    opened = open_model(OLDEST)
    assert opened.version == 1
    assert opened.recipe == RECIPE
    assert differences(opened.mixture, example()) == []


def test_a_file_without_the_newest_optional_fields_stays_readable(tmp_path):
    """A field that is added with a default needs no new version."""
    parts = {name: bytes(data) for name, data in unpack(OLDEST.read_bytes()).items()}
    manifest = json.loads(parts["manifest.json"])
    del manifest["model"]["target_name"]
    path = tmp_path / "m"
    path.write_bytes(pack({**parts, "manifest.json": json.dumps(manifest).encode()}))
    assert load(path).target_name == "y"


def to_two(manifest, arrays):
    """Call a field and an array by other names."""
    model = dict(manifest["model"])
    model["target"] = model.pop("target_name")
    slopes = arrays.pop("coef")
    return {**manifest, "model": model}, {**arrays, "slopes": slopes}


def to_three(manifest, arrays):
    """Call them by their old names again, with a mark."""
    model = dict(manifest["model"])
    model["target_name"] = model.pop("target") + "!"
    slopes = arrays.pop("slopes")
    return {**manifest, "model": model}, {**arrays, "coef": slopes + 1}


def test_old_files_are_brought_up_to_date_step_by_step(monkeypatch):
    monkeypatch.setattr(document, "VERSION", 3)
    monkeypatch.setattr(document, "MIGRATIONS", {1: to_two, 2: to_three})
    opened = open_model(OLDEST)
    assert opened.version == 1
    assert opened.mixture.target_name == example().target_name + "!"
    assert np.array_equal(opened.mixture.coef, example().coef + 1)


def test_an_old_file_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "VERSION", 2)
    monkeypatch.setattr(document, "MIGRATIONS", {1: to_two})
    parts = {name: bytes(data) for name, data in unpack(OLDEST.read_bytes()).items()}
    manifest = json.loads(parts["manifest.json"]) | {"model": []}
    path = tmp_path / "m"
    path.write_bytes(pack({**parts, "manifest.json": json.dumps(manifest).encode()}))
    with pytest.raises(ModelFileError, match="manifest is not that of version 1"):
        load(path)


def test_every_older_version_has_its_migration():
    assert sorted(document.MIGRATIONS) == list(range(1, document.VERSION))


def test_a_newer_file_says_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "m.regimix"
    with monkeypatch.context() as patch:
        patch.setattr(document, "VERSION", 2)
        save(example(), path)
    with pytest.raises(
        ModelFileError, match=r"of version 2 .* reads versions up to 1\. Update regimix"
    ):
        load(path)
