"""What is saved is what is loaded, to the bit."""

import dataclasses
import io
import json
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings

import regimix
from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.datasets import load_tone
from regimix.errors import ModelFileError
from regimix.result.mixture import Mixture
from regimix.search.subspace import Subspace
from regimix.store import LEFT_OUT, LIMITS, _hints, decode, encode, load, open_model, save
from tests.store.examples import RECIPE, differences, example, mixtures, with_trees

pytestmark = pytest.mark.usefixtures("searched_once")


@pytest.fixture(scope="module")
def tone():
    data = load_tone()
    return data, MixedLinearRegression(random_state=0).fit(data.X, data.y)


def test_every_field_comes_back_to_the_bit(tmp_path):
    path = tmp_path / "m.regimix"
    for mixture in (example(), with_trees()):
        save(mixture, path)
        assert differences(load(path), mixture) == []


@settings(max_examples=30)
@given(mixtures())
def test_any_mixture_comes_back_to_the_bit(mixture):
    data = encode(mixture, labels=True, recipe=None)
    assert differences(decode(data).mixture, mixture) == []
    assert encode(decode(data).mixture, labels=True, recipe=None) == data


def test_a_fit_comes_back_and_says_the_same(tmp_path, tone):
    data, fit = tone
    path = tmp_path / "m.regimix"
    regimix.save(fit, path)
    loaded = regimix.load(str(path))
    assert differences(loaded, fit.mixture_) == []
    assert loaded.excerpt is None
    assert str(loaded) == str(fit.mixture_)
    assert str(loaded.summary()) == str(fit.mixture_.summary())
    assert np.array_equal(
        loaded.responsibilities(data.X, data.y), fit.responsibilities(data.X, data.y)
    )
    loaded.coef[0, 0] = 1.0  # the arrays are the caller's own


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_every_way_to_fit_can_be_saved(tmp_path):
    data = load_tone()
    path = tmp_path / "m.regimix"
    for options in (
        {"gating": "logistic"},
        {"gating": "trees"},
        {"outliers": 0.1, "n_components": 2},
        {"outliers": False, "n_components": 2},
        {"noise": "student", "n_components": 2},
        {"search": "partition", "n_components": 2},
        {"fit_intercept": False, "n_components": 1},
        {"search": "net", "n_components": 1},
    ):
        fit = MixedLinearRegression(random_state=0, **options).fit(data.X, data.y)
        save(fit, path)
        assert differences(load(path), fit.mixture_) == [], options


def test_the_same_mixture_gives_the_same_bytes(tmp_path):
    save(example(), tmp_path / "a")
    save(example(), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numbers_of_numpy_are_saved_like_others():
    mixture = dataclasses.replace(example(), n_iter=np.int64(7), settled=np.False_, mass=np.int8(4))
    data = encode(mixture, labels=True, recipe=None)
    assert differences(decode(data).mixture, example()) == []


def test_a_model_that_is_too_large_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    with pytest.raises(ModelFileError, match=r"cannot be saved: .*without labels"):
        save(example(), tmp_path / "m")


def test_labels_may_be_left_out(tmp_path):
    path = tmp_path / "m.regimix"
    save(example(), path, labels=False)
    loaded = load(path)
    assert loaded.labels.shape == (0,)
    assert loaded.n_rows == 4
    save(loaded, path)  # and again
    assert differences(load(path), loaded) == []


def test_labels_take_as_many_bytes_as_they_need():
    sizes = {}
    for m in (2, 200, 70_000):
        labels = np.array([-1, m - 1] * 5000)
        many = dataclasses.replace(
            example(), coef=np.zeros((m, 2)), intercept=np.zeros(m), weights=np.full(m, 1 / m),
            scale=np.zeros(m), labels=labels, n_rows=labels.size, component_evidence=None,
            origin=(), ranks=None, inference=None, gate=None, resampled=None,
        )  # fmt: skip
        data = encode(many, labels=True, recipe=None)
        sizes[m] = len(data) - len(encode(many, labels=False, recipe=None))
        assert np.array_equal(decode(data).mixture.labels, labels)
    assert [round(size / 10_000) for size in sizes.values()] == [1, 2, 4]


@pytest.mark.parametrize("kind", [np.int8, np.float64])
def test_loading_takes_at_most_twice_the_file(tmp_path, kind):
    """Numbers go from the file to where they stay, without copies in between."""
    many = 20_000_000 // kind().itemsize
    mixture = dataclasses.replace(example(), labels=np.zeros(many, np.int8), n_rows=many)
    if kind is np.float64:
        large = Subspace(np.zeros((many, 1)), np.zeros(many), 1.5, 1, "bounded")
        mixture = dataclasses.replace(example(), spectrum=large)
    path = tmp_path / "m.regimix"
    path.write_bytes(encode(mixture, labels=True, recipe=None))
    load(path)
    tracemalloc.start()
    try:
        loaded = load(path)
        str(loaded), str(loaded.summary())
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2 * path.stat().st_size + 3_000_000


def test_the_recipe_comes_back(tmp_path):
    path = tmp_path / "m.regimix"
    save(example(), path, recipe=RECIPE)
    opened = open_model(path)
    assert opened.recipe == RECIPE
    assert (opened.version, opened.library) == (2, regimix.__version__)
    save(example(), path, recipe={**RECIPE, "power": 0.5})
    assert open_model(path).recipe == {**RECIPE, "power": 0.5}
    save(dataclasses.replace(example(), encoding=None), path)
    assert open_model(path).recipe is None


def test_a_recipe_for_other_features_does_not_read_frames_for_the_mixture(tmp_path):
    path = tmp_path / "m.regimix"
    other = {**RECIPE, "columns": RECIPE["columns"][:1]}
    save(example(), path, recipe=other)
    opened = open_model(path)
    assert (opened.recipe, opened.mixture.encoding) == (other, None)


def test_other_programs_can_read_it(tmp_path):
    path = tmp_path / "m.regimix"
    save(example(), path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["model"]["feature_names"] == ["area", "colour=blue"]
        for name, entry in manifest["arrays"].items():
            array = np.load(io.BytesIO(archive.read(f"arrays/{name}.npy")), allow_pickle=False)
            assert (array.dtype.str, list(array.shape)) == (entry["dtype"], entry["shape"])
        coef = np.load(io.BytesIO(archive.read("arrays/coef.npy")))
    assert np.array_equal(coef, example().coef)


def test_arrays_of_any_layout_are_saved():
    mixture = dataclasses.replace(example(), coef=np.asfortranarray(example().coef).astype(">f8"))
    assert differences(decode(encode(mixture, labels=True, recipe=None)).mixture, example()) == []


def test_no_field_is_forgotten():
    """A new field of a result is in the example with a value of its own, or is left out."""
    for record, limits in LIMITS.items():
        fields = {field.name for field in dataclasses.fields(record)}
        assert set(_hints(record)) | set(LEFT_OUT.get(record, ())) == fields, record
        assert set(limits) <= set(_hints(record)), record
    for name, hint in _hints(Mixture).items():
        assert getattr(example(), name) is not None, (name, hint)


def test_every_array_has_sizes():
    """How long an array is, is compared with others; whatever is an array has to say so."""
    for record, limits in LIMITS.items():
        for name, hint in _hints(record).items():
            if "ndarray" in str(hint):
                assert limits[name].sizes, (record, name)


# --- what cannot be saved -------------------------------------------------------------------------


class OwnGate:
    def shares(self, Z):
        return np.ones((len(Z), 2)) / 2


def changed(**fields):
    return dataclasses.replace(example(), **fields)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (MixedLinearRegression(), "not fitted; call fit"),
        (TrimmedRegressor(), "a TrimmedRegressor cannot be saved"),
        ({"coef": 1}, "a dict cannot be saved"),
        (changed(gate=OwnGate()), 'OwnGate.*hold no code.*gating="logistic"'),
        (changed(seed=10**50), "seed is not a number of at most 39 digits"),
        (changed(target_name="\ud800"), "target_name is not a text"),
        (changed(feature_names=("one",)), "feature_names is not of the right size"),
        (changed(labels=np.array([0, 1, 2, 0])), "labels is not made of numbers of components"),
        (changed(labels=np.array([0, 1])), "labels is not one number for each row"),
        (changed(coef=np.array([[np.nan, 1.0], [1.0, 1.0]])), "coef is not finite"),
        (changed(coef=[[1.0, 2.0], [1.0, 2.0]]), "coef is not an array"),
        (changed(coef=np.array([[1, 2], [3, object()]])), "coef is not of the right type"),
        (changed(origin="joint"), "origin is not a list"),
        (changed(n_rows=4.0), "n_rows is not a whole number"),
        (changed(evidence="large"), "evidence is not a number"),
        (changed(timings={1: 1.0}), "timings is not a dictionary of texts"),
        (changed(fit_intercept=1), "fit_intercept is not true or false"),
        (changed(rows=3.0), "rows is not an object"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_said_and_leaves_the_old_file(tmp_path, model, reason):
    path = tmp_path / "m.regimix"
    path.write_bytes(b"old")
    with pytest.raises(ModelFileError, match=reason):
        save(model, path)
    assert path.read_bytes() == b"old"


def test_a_recipe_must_be_one(tmp_path):
    with pytest.raises(ModelFileError, match=r"recipe\.columns is not there"):
        save(example(), tmp_path / "m", recipe={"target": "y"})


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_write_that_fails_midway_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "m.regimix"
    save(example(), path)
    before = path.read_bytes()

    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    target = {
        "write": "regimix.store.write_bytes",
        "fsync": "os.fsync",
        "replace": "pathlib.Path.replace",
    }
    monkeypatch.setattr(target[step], fail)
    with pytest.raises(OSError, match="No space left"):
        save(changed(n_iter=8), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    save(changed(n_iter=8), path)
    assert load(path).n_iter == 8


def test_a_loaded_mixture_can_be_pickled(tmp_path):
    save(example(), tmp_path / "m")
    assert differences(pickle.loads(pickle.dumps(load(tmp_path / "m"))), example()) == []


def test_a_mixture_is_what_comes_back(tmp_path):
    save(example(), tmp_path / "m")
    assert isinstance(load(tmp_path / "m"), Mixture)
