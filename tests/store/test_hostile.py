"""Files that are damaged, altered or made to harm are refused with a reason, and nothing else."""

import dataclasses
import hashlib
import io
import json
import os
import pickle
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.errors import ModelFileError
from regimix.store import (
    MANIFEST,
    MOST_MANIFEST_BYTES,
    MOST_MEMBERS,
    VERSION,
    decode,
    encode,
    load,
    open_model,
    save,
)
from tests.store.examples import RECIPE, differences, example, pack, unpack, with_trees

VALID = encode(example(), labels=True, recipe=RECIPE)


def members():
    """Take a valid file apart, so that a test can put it together wrongly."""
    return unpack(VALID)


def refusal(data):
    """Return why a file is refused."""
    with pytest.raises(ModelFileError) as caught:
        decode(data)
    return str(caught.value)


def forged(change):
    """Change the manifest of a valid file; everything else is as it should be."""
    parts = members()
    manifest = json.loads(parts[MANIFEST])
    change(manifest)
    return pack({**parts, MANIFEST: json.dumps(manifest).encode()})


def npy(array, version=(1, 0), **options):
    """Return an array as a .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version, **options)
    return buffer.getvalue()


def with_text(text):
    """Put any text in place of the manifest."""
    return pack({**members(), MANIFEST: text if isinstance(text, bytes) else text.encode()})


def with_array(name, array, data=None):
    """Put another array into a valid file, checksum and entry and all."""
    parts = members()
    manifest = json.loads(parts[MANIFEST])
    parts[f"arrays/{name}.npy"] = npy(array) if data is None else data
    manifest["arrays"][name] = {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(parts[f"arrays/{name}.npy"]).hexdigest(),
    }
    return pack({**parts, MANIFEST: json.dumps(manifest).encode()})


def test_the_tools_of_these_tests_make_valid_files():
    assert differences(decode(forged(lambda manifest: None)).mixture, example()) == []
    assert differences(decode(with_array("coef", example().coef)).mixture, example()) == []


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"", b"PK", b"hello, world", b"\x00" * 100, pickle.dumps({"a": 1}), b"\x93NUMPY\x01\x00"],
)
def test_other_files_are_no_model_files(data):
    assert "it is no model file" in refusal(data)


def test_every_truncation_is_refused():
    for length in range(0, len(VALID), 7):
        refusal(VALID[:length])
    assert "cut off" in refusal(VALID[: len(VALID) // 2])
    assert "cut off" in refusal(VALID[:-1])


@pytest.mark.parametrize("extra", [b"\x00", b"PK\x03\x04", VALID])
def test_nothing_may_follow(extra):
    refusal(VALID + extra)


def test_nothing_may_come_first():
    assert "it is no model file" in refusal(b"MZ" + VALID)


def headers():
    """List the places of two headers, and of every third byte of the list at the end."""
    last, listing = VALID.rindex(b"PK\x03\x04"), VALID.index(b"PK\x01\x02")
    size = 30 + 13  # and most of the name
    return [*range(size), *range(last, last + size), *range(listing, len(VALID), 3)]


@pytest.mark.parametrize("bit", range(8))
def test_a_changed_byte_of_the_headers_is_refused_or_harmless(bit):
    for place in headers():
        changed = bytearray(VALID)
        changed[place] ^= 1 << bit
        with suppress(ModelFileError):
            assert differences(decode(bytes(changed)).mixture, example()) == []


def test_a_changed_array_is_noticed():
    place = VALID.index(example().coef.tobytes())
    assert "checksum" in refusal(VALID[:place] + b"\x01" + VALID[place + 1 :])


def test_an_array_whose_checksum_is_forged_in_one_place_only_is_noticed():
    parts = members()
    parts["arrays/coef.npy"] = npy(example().coef + 1)
    assert "'coef' was changed" in refusal(pack(parts))


@settings(max_examples=80)
@given(st.data())
def test_random_damage_is_refused_or_harmless(data):
    damaged = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(VALID) - 1))
        new = data.draw(st.binary(max_size=12))
        damaged[start : start + data.draw(st.integers(0, 12))] = new
    try:
        loaded = decode(bytes(damaged))
    except ModelFileError:
        return
    assert differences(loaded.mixture, example()) == []


@settings(max_examples=80)
@given(st.data())
def test_random_damage_of_the_manifest_with_right_checksums_raises_nothing_else(data):
    """Whoever forges a file can make every checksum fit."""
    text = bytearray(members()[MANIFEST])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.sampled_from([b"", b"9", b"-", b"[", b"}", b'"', b"null", b"1e999"]))
        text[start : start + data.draw(st.integers(0, 6))] = new
    with suppress(ModelFileError):
        decode(with_text(bytes(text)))


words = st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def places(plain, way=()):
    """List the ways to every value of a document."""
    yield way
    if isinstance(plain, list):
        plain = dict(enumerate(plain))
    for key, value in plain.items() if isinstance(plain, dict) else ():
        yield from places(value, (*way, key))


PLACES = [way for way in places(json.loads(members()[MANIFEST])) if way]


@settings(max_examples=80)
@given(st.sampled_from(PLACES), JSON)
def test_any_value_in_any_place_of_the_manifest_raises_nothing_else(way, value):
    def change(manifest):
        for key in way[:-1]:
            manifest = manifest[key]
        manifest[way[-1]] = value

    with suppress(ModelFileError):
        decode(forged(change))


# --- members --------------------------------------------------------------------------------------


def test_a_zip_bomb_is_not_unpacked():
    bomb = pack({**members(), "arrays/zeros.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    assert "compressed" in refusal(bomb)


def test_members_are_compared_with_their_names_in_the_manifest():
    parts = members()
    assert "the list of its members" in refusal(pack({**parts, "../../etc/passwd": b"x"}))
    assert "the list of its members" in refusal(pack({**parts, "run.py": b"x"}))
    del parts["arrays/coef.npy"]
    assert "the list of its members" in refusal(pack(parts))


@pytest.mark.parametrize(
    "name", ["../coef", "/etc/passwd", "a/b", "", "coef\x00", "C:coef", "x" * 80]
)
def test_names_of_arrays_are_plain(name):
    parts = members()
    manifest = json.loads(parts[MANIFEST])
    entry = manifest["arrays"].pop("coef")
    data = parts.pop("arrays/coef.npy")
    manifest["arrays"][name] = entry
    parts = {**parts, MANIFEST: json.dumps(manifest).encode(), f"arrays/{name}.npy": data}
    assert "plain names" in refusal(pack(parts))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_may_not_appear_twice():
    parts = list(members().items())
    assert "two members called" in refusal(pack([*parts, parts[-1]]))


def test_the_list_at_the_end_must_tell_the_same():
    parts = members()
    other = pack({**parts, "arrays/coef.npy": parts["arrays/intercept.npy"]})
    body = VALID[: VALID.index(b"PK\x01\x02")]
    assert "list of members" in refusal(body + other[other.index(b"PK\x01\x02") :])


def listed(data, change):
    """Change the list at the end of an archive, and what the last record says of its size."""
    start = data.index(b"PK\x01\x02")
    listing, end = change(data[start:-22]), bytearray(data[-22:])
    end[12:16] = len(listing).to_bytes(4, "little")
    return data[:start] + listing + bytes(end)


def test_a_name_in_the_list_that_is_not_utf8_is_refused():
    listing = VALID.index(b"PK\x01\x02")
    changed = bytearray(VALID)
    changed[listing + 9] |= 8  # "this name is UTF-8"
    changed[listing + 46] = 0xFF
    assert "cut off or was changed" in refusal(bytes(changed))


def test_members_may_not_overlap():
    """Each of them as large as the file: together they would fill the memory."""

    def all_the_first(listing):
        return listing[: listing.index(b"PK\x01\x02", 1)] * 60

    refusal(listed(VALID, all_the_first))


def test_a_long_list_of_members_is_not_read(monkeypatch):
    monkeypatch.setattr(zipfile, "ZipFile", None)
    assert f"more than {MOST_MEMBERS}" in refusal(listed(VALID, lambda listing: listing * 1000))
    # Another list, which zipfile would prefer, whose size has 64 bits.
    locator = b"PK\x06\x07" + bytes(16)
    assert "cut off or was changed" in refusal(VALID[:-22] + locator + VALID[-22:])


def test_nothing_may_be_hidden_between_members():
    stop = VALID.rindex(b"PK\x03\x04")
    refusal(VALID[:stop] + b"hidden" + VALID[stop:])
    start = VALID.index(b"PK\x01\x02")
    end = bytearray(VALID[start:])
    end[-6:-2] = (start + 6).to_bytes(4, "little")
    refusal(VALID[:start] + b"hidden" + bytes(end))


@pytest.mark.parametrize(
    ("name", "reason"), [("é.npy", "otherwise not as regimix"), ("x" * 101, "short plain text")]
)
def test_names_of_members_are_plain(name, reason):
    assert reason in refusal(pack({**members(), name: b""}))


def test_members_are_counted():
    many = {f"a{i}": b"" for i in range(MOST_MEMBERS + 1)}
    assert f"more than {MOST_MEMBERS}" in refusal(pack(many))


def test_the_manifest_comes_first():
    parts = members()
    manifest = parts.pop(MANIFEST)
    assert "first member" in refusal(pack({**parts, MANIFEST: manifest}))
    assert "first member" in refusal(pack(parts))


# --- the manifest ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"a":' * 50_000, "not JSON"),
        ("[]", "not an object"),
        ("1" * 10_000, "huge numbers"),
        ("1e400", "not finite"),
        ("NaN", "not finite"),
        ('{"format": 1, "format": 2}', "repeated names"),
        ('{"format": "pickle"}', "not that of a regimix model"),
        (b'{"format": "\xff"}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
    ],
)  # fmt: skip
def test_a_manifest_that_is_none(text, reason):
    assert reason in refusal(with_text(text))


def test_a_manifest_is_not_endless():
    assert "sane size" in refusal(with_text(b" " * (MOST_MANIFEST_BYTES + 1)))


def put(*way):
    """Make a change that puts a value into a place of the manifest."""
    *keys, last, value = way

    def change(manifest):
        for key in keys:
            manifest = manifest[key]
        manifest[last] = value

    return change


MODEL = "model"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("version", VERSION + 1), "reads versions up to 2. Update regimix"),
        (put("version", 0), "version is not a whole number from 1"),
        (put("version", True), "version is not a whole number from 1"),
        (put("version", "1"), "version is not a whole number from 1"),
        (put("library", None), "library is not a version"),
        (put("note", "hello"), "not made of"),
        (put("arrays", []), "arrays is not an object"),
        (put("arrays", "coef", "dtype", "|O"), "coef.dtype is not one of <f8"),
        (put("arrays", "coef", "dtype", ">f8"), "coef.dtype is not one of <f8"),
        (put("arrays", "coef", "dtype", 8), "coef.dtype is not a text"),
        (put("arrays", "coef", "dtype", []), "coef.dtype is not a text"),
        (put("arrays", "coef", "shape", [4]), "not of the shape (4,)"),
        (put("arrays", "coef", "shape", [2**60, 2**60]), "too large"),
        (put("arrays", "coef", "shape", [0, 10**30]), "too large"),
        (put("arrays", "coef", "shape", [-2, -2]), "shape.0 is not a whole number"),
        (put("arrays", "coef", "shape", [2.0, 2]), "shape.0 is not a whole number"),
        (put("arrays", "coef", "shape", [1] * 9), "too large"),
        (put("arrays", "coef", "shape", "22"), "shape is not a list"),
        (put("arrays", "coef", "sha256", "0"), "'coef' was changed"),
        (put("arrays", "coef", "more", 1), "coef.more is not a field that is known"),
        (put(MODEL, None), "model is not an object"),
        (put(MODEL, "__class__", "os.system"), "a field that is known"),
        (put(MODEL, "excerpt", None), "a field that is known"),
        (put(MODEL, "coef", {"array": "intercept"}), "a reference to its array"),
        (put(MODEL, "coef", [[1, 2], [3, 4]]), "a reference to its array"),
        (put(MODEL, "component_evidence", None), "belongs nowhere: 'component_evidence'"),
        (put(MODEL, "n_rows", 5), "labels is not one number for each row"),
        (put(MODEL, "n_rows", -1), "n_rows is not a whole number from 0"),
        (put(MODEL, "n_rows", True), "n_rows is not a whole number"),
        (put(MODEL, "weighting", "some"), "weighting is not one of none, counts, importances"),
        (put(MODEL, "weighting", 1), "weighting is not a text"),
        (put(MODEL, "mass", "NaN"), "mass is not a number from 1"),
        (put(MODEL, "mass", "Infinity"), "mass is not a number from 1"),
        (put(MODEL, "mass", "many"), "mass is not a number"),
        (put(MODEL, "evidence", "much"), "evidence is not a number"),
        (put(MODEL, "outlier_share", 1.5), "outlier_share is not a number from 0 to 1"),
        (put(MODEL, "feature_names", ["one"]), "not of the right size: 1 instead of 2"),
        (put(MODEL, "feature_names", []), "one name for each feature"),
        (put(MODEL, "feature_names", ["a", 1]), "feature_names.1 is not a text"),
        (put(MODEL, "feature_names", ["a", "\ud800"]), "feature_names.1 is not a text"),
        (put(MODEL, "target_name", ["y"]), "target_name is not a text"),
        (put(MODEL, "settings", "solver", "pickle"), "solver is not one of exact"),
        (put(MODEL, "settings", "noise", "pickle"), "noise is not one of auto"),
        (put(MODEL, "settings", "outliers", 1.5), "outliers is not a number from 0 to 1"),
        (put(MODEL, "settings", "callback", "os.system"), "a field that is known"),
        (put(MODEL, "settings", "keep_rows", True), "a field that is known"),
        (put(MODEL, "noise_degrees", -1.0), "noise_degrees is not a number from 4"),
        (put(MODEL, "background_width", "NaN"), "background_width is not a number from 4"),
        (put(MODEL, "fit_intercept", 1), "fit_intercept is not true or false"),
        (put(MODEL, "gate", "names", []), "gate.names is not one name"),
        (put(MODEL, "fit_intercept", False), "covariance is not that of all coefficients"),
        (put("recipe", []), "recipe is not an object"),
        (put("recipe", "columns", [{}]), "columns.0.name is not there"),
        (put("recipe", "columns", 0, "kind", "eval"), "kind is not one of"),
        (put("recipe", "power", "root"), "power is not a number"),
        (put("recipe", "columns", 0, "levels", ["a", "b"]), "column 'area' with 2 levels"),
        (put(MODEL, "gate", "columns", 0, "kind", "eval"), "kind is not one of"),
    ],
)  # fmt: skip
def test_a_manifest_that_is_wrong_somewhere(change, reason):
    assert reason in refusal(forged(change))


def test_a_refusal_holds_nothing_that_a_terminal_would_obey():
    for change in (put(MODEL, "\x1b[2J", 1), put(MODEL, "timings", "\x1b[2J", "soon")):
        assert refusal(forged(change)).isprintable()


def test_a_field_without_a_default_must_be_there():
    assert "model.scale is not there" in refusal(
        forged(lambda manifest: manifest["model"].pop("scale"))
    )


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("left", [-1, 1, 4, -1, -1, -1]),  # a node below itself
        ("right", [-1, 3, 1, -1, -1, -1]),  # and one below a later one: ways without an end
        ("left", [-1, 2, 6, -1, -1, -1]),  # nodes that are not there
        ("left", [-1, -1, 4, -1, -1, -1]),
        ("left", [5, 2, 4, -1, -1, -1]),  # a leaf with something below it
        ("feature", [-1, 2, 1, -1, -1, -1]),  # a column that is not there
        ("feature", [-1, -1, 1, -1, -1, -1]),
        ("roots", [0, 6]),
        ("roots", []),
    ],
)
def test_trees_that_lead_nowhere_are_refused(field, values):
    mixture = with_trees()
    gate = dataclasses.replace(mixture.gate, **{field: np.array(values, dtype=np.int64)})
    data = encode(dataclasses.replace(mixture, gate=gate), labels=True, recipe=RECIPE)
    assert "gate is not made of trees in which every way ends in a leaf" in refusal(data)


def test_a_tree_that_is_too_deep_is_refused():
    mixture, steps = with_trees(), 65
    nodes = np.arange(2 * steps + 1)
    inner = (nodes % 2 == 0) & (nodes < 2 * steps)
    gate = dataclasses.replace(
        mixture.gate,
        feature=np.where(inner, 0, -1),
        threshold=np.zeros(nodes.size),
        left=np.where(inner, nodes + 1, -1),
        right=np.where(inner, nodes + 2, -1),
        value=np.full((nodes.size, 2), 0.5),
        roots=np.zeros(1, dtype=np.int64),
    )
    data = encode(dataclasses.replace(mixture, gate=gate), labels=True, recipe=RECIPE)
    assert "gate is not made of trees" in refusal(data)


def test_columns_of_a_gate_must_become_its_columns():
    mixture = with_trees()
    gate = dataclasses.replace(mixture.gate, columns=mixture.gate.columns[:1])
    data = encode(dataclasses.replace(mixture, gate=gate), labels=True, recipe=RECIPE)
    assert "gate.columns is not what becomes the columns" in refusal(data)


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("coef", np.array([[np.nan, 1.0], [1.0, 1.0]]), "coef is not finite"),
        ("coef", np.array([[np.inf, 1.0], [1.0, 1.0]]), "coef is not finite"),
        ("coef", np.zeros((2, 3)), "feature_names is not of the right size: 2 instead of 3"),
        ("coef", np.zeros(4), "an array of 2 dimensions"),
        ("coef", np.zeros((2, 2), dtype=np.int64), "coef is not of the right type"),
        ("coef", np.zeros((0, 0)), "intercept is not of the right size: 2 instead of 0"),
        ("labels", np.zeros(4), "labels is not of the right type"),
        ("labels", np.array([0, 0, 0, 2], dtype=np.int8), "numbers of components"),
        ("labels", np.array([0, 0, 0, -2], dtype=np.int8), "labels is not within -1"),
        ("weights", np.array([2.0, 0.0]), "weights is not within 0 and 1"),
        ("scale", np.array([-1.0, 0.0]), "scale is not within 0"),
        ("rows.mean", np.array([1.0, np.nan]), "rows.mean is not finite"),
    ],
)  # fmt: skip
def test_arrays_that_cannot_be(name, array, reason):
    assert reason in refusal(with_array(name, array))


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_pickles_are_not_even_looked_at(tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "bomb"
    bomb = npy(np.array([[Bomb(trace), 1], [2, 3]], dtype=object), allow_pickle=True)
    np.load(io.BytesIO(bomb), allow_pickle=True)
    trace.rmdir()  # it does explode
    assert "shape" in refusal(with_array("coef", np.zeros((2, 2)), bomb))
    path.write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(ModelFileError, match="no model file"):
        load(path)
    assert not trace.exists()


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff", b"x" * 160])
def test_arrays_without_their_header(data):
    assert "shape" in refusal(with_array("coef", np.zeros((2, 2)), data))


def header(text, version=b"\x01\x00", length=2):
    """Return the array of zeros under another header."""
    return b"\x93NUMPY" + version + len(text).to_bytes(length, "little") + text + bytes(32)


RIGHT = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"


def test_the_header_of_these_tests_is_a_valid_one():
    assert decode(with_array("coef", np.zeros((2, 2)), header(RIGHT))).mixture.coef.sum() == 0


@pytest.mark.parametrize(
    "data",
    [
        header(RIGHT + b" " * 60_000),
        header(RIGHT.replace(b"False", b"True")),
        header(RIGHT.replace(b"<f8", b"<i8")),
        header(RIGHT.replace(b"<f8", b"|O")),
        header(RIGHT.replace(b"2, 2", b"2")),
        header(RIGHT.replace(b", }", b"}")),
        header(RIGHT.replace(b"'", b'"')),
        header(b" " + RIGHT),
        header(RIGHT.replace(b"2, 2", b"2L, 2L")),  # as Python 2 wrote it
        header(RIGHT.replace(b"2, 2", b"9" * 400)),
        header(RIGHT.replace(b"2, 2", b"-2, -2")),
        header(RIGHT, b"\x02\x00", 4),
        header(b"(" * 400),
        header(b"-" * 400),
        header(b"__import__('os').mkdir('trace')"),
        header(b"\xff\x00\n\t"),
        header(RIGHT)[:-1],
        header(RIGHT) + b"\x00",
    ],
)
def test_other_headers_of_arrays_are_refused(data):
    assert "shape" in refusal(with_array("coef", np.zeros((2, 2)), data))


# --- the way in -----------------------------------------------------------------------------------


def test_large_files_are_not_read(tmp_path):
    path = tmp_path / "m.regimix"
    save(example(), path)
    size = path.stat().st_size
    assert load(path, max_bytes=size) is not None
    with pytest.raises(ModelFileError, match=f"has {size} bytes, more than the {size - 1} allowed"):
        load(path, max_bytes=size - 1)
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # a file of holes
    with pytest.raises(ModelFileError, match="more than the"):
        load(path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"nothing\.regimix' cannot be read.*No such file"):
        load(tmp_path / "nothing.regimix")
    with pytest.raises(ModelFileError, match="directory"):
        load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        open_model(tmp_path / "pipe")


def test_a_refusal_names_the_file_and_hides_no_cause(tmp_path):
    path = tmp_path / "bad.regimix"
    path.write_bytes(VALID[:-3])
    with pytest.raises(
        ModelFileError, match=r"bad\.regimix' cannot be read as a model: it is cut"
    ) as e:
        load(path)
    assert isinstance(e.value, ValueError)
