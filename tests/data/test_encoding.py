"""Encoding: values by the declared range alone, and one record never touching another."""

import decimal

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from limbeck.data import ImageSchema, encoding
from limbeck.errors import RequestError

SCHEMA = ImageSchema(shape=(3, 2, 1), classes=(0, 1, 2), low=0, high=10)
COLOUR = ImageSchema(shape=(3, 2, 4), classes=("cat", "dog", "7"), low=-5, high=5)


def images(n, schema=SCHEMA, seed=0):
    return np.random.default_rng(seed).uniform(schema.low, schema.high, (n, *schema.shape))


def test_ends_and_centre_of_the_declared_range():
    X = np.zeros((1, 3, 2, 1))
    X[0, :, :, 0] = [[0, 5], [10, 2.5], [-1e38, 1e38]]
    x, c = SCHEMA.encode(X, [2])
    assert x[0, :, :, 0].tolist() == [[-1, 0], [1, -0.5], [-1, 1]]
    assert (x.dtype, c.dtype, c.tolist()) == (np.float32, np.int32, [2])


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "<u2", ">i4", "u8", "f2", "f4", ">f8", "longdouble"])
def test_every_real_type_and_form(dtype):
    X = np.random.default_rng(1).integers(0, 11, (5, 3, 2, 1)).astype(dtype)
    expected = (X.astype(float) / 5 - 1).astype(np.float32)
    y = [0, 1, 2, 0, 1]
    for form in (X, X[..., 0], X.reshape(5, 6), list(X), X.tolist(), X.astype(object), tuple(X[..., 0])):
        x, c = SCHEMA.encode(form, y)
        np.testing.assert_allclose(x, expected, atol=1e-7)
        assert c.tolist() == y


def test_a_jax_array_and_a_memory_map(tmp_path):
    X = images(4).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    expected = SCHEMA.encode(X, [0, 1, 2, 0])
    for form in (jnp.asarray(X), np.load(tmp_path / "x.npy", mmap_mode="r")):
        for found, wanted in zip(SCHEMA.encode(form, jnp.array([0, 1, 2, 0])), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@given(hnp.arrays(np.float32, (2, 3, 2, 4), elements=st.floats(-5, 5, width=32)))
def test_decode_undoes_encode_within_the_range(X):
    x, _ = COLOUR.encode(X, ["cat", "dog"])
    np.testing.assert_allclose(COLOUR.decode(x), X, atol=2e-6)


def test_decode_is_not_held_within_the_range():
    assert SCHEMA.decode([-1, 0, 1, 3, -2]).tolist() == [0, 5, 10, 20, -5]
    assert SCHEMA.decode(np.zeros((2, 3, 2, 1), np.float32)).dtype == np.float32


def test_no_records():
    for X in (np.zeros((0, 3, 2, 1)), []):
        x, c = SCHEMA.encode(X, [])
        assert x.shape == (0, 3, 2, 1)
        assert c.shape == (0,)


LABELS = [
    0,
    "1",
    2.0,
    np.int8(1),
    np.float16(2),
    np.str_("0"),
    True,
    b"2",
    jnp.int32(1),
    np.array(2),
    np.longdouble(1),
]
NOT_LABELS = [
    None,
    float("nan"),
    float("inf"),
    3,
    -1,
    0.5,
    "3",
    "01",
    " 1",
    "1.0",
    "",
    b"\xff",
    10**5000,
    1e300,
    1 + 0j,
    decimal.Decimal(1),
    [1],
    (1,),
    {},
    object(),
    np.array([1, 2]),
    np.timedelta64(1, "ns"),
    np.datetime64(1, "ns"),
    "\ud800",
]


def test_labels_match_by_value():
    _, c = SCHEMA.encode(images(len(LABELS)), LABELS)
    assert c.tolist() == [0, 1, 2, 1, 2, 0, 1, 2, 1, 2, 1]
    _, c = SCHEMA.encode(images(len(NOT_LABELS)), NOT_LABELS)
    assert c.tolist() == [-1] * len(NOT_LABELS)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array([0, 2, 3, 255], np.uint8), [0, 2, -1, -1]),
        (np.array([-1, 2, -(2**63), 2**63 - 1]), [-1, 2, -1, -1]),
        (np.array([0, 2**63, 2**64 - 1, 1], np.uint64), [0, -1, -1, 1]),
        (np.array([[0], [1], [2], [9]], np.int16), [0, 1, 2, -1]),
        (np.array([0.0, 1.5, np.nan, 2]), [0, -1, -1, 2]),
        (np.array([np.inf, -np.inf, 1e300, -0.0]), [-1, -1, -1, 0]),
        (np.array([True, False, True, True]), [1, 0, 1, 1]),
        (np.array(["0", "1", "2.0", "two"]), [0, 1, -1, -1]),
        (np.array([b"0", b"1", b"\xff", b"two"]), [0, 1, -1, -1]),
        (np.array(["2", None, 1.0, "x"], object), [2, -1, 1, -1]),
        (np.array([1, 2, 0, 1], "m8[ns]"), [-1] * 4),
        (np.array([1, 2, 0, 1], complex), [-1] * 4),
        (range(4), [0, 1, 2, -1]),
    ],
)
def test_arrays_of_labels(y, expected):
    assert SCHEMA.encode(images(4), y)[1].tolist() == expected


def test_numbers_match_classes_of_text():
    assert COLOUR.encode(images(4, COLOUR), np.array([7, 0, 1, 7]))[1].tolist() == [2, -1, -1, 2]
    assert COLOUR.encode(images(4, COLOUR), ["cat", 7.0, "7", "Cat"])[1].tolist() == [0, 2, 2, -1]


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1, max_size=20),
    classes=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=2, max_size=5, unique=True),
)
def test_the_array_and_the_loop_agree(values, classes):
    names = tuple(classes)
    expected = [names.index(v) if v in names else -1 for v in values]
    for y in (values, np.array(values), np.array(values, object).astype(str)):
        found = encoding.class_indices(encoding.as_labels(y), names)
        assert found.tolist() == expected
    floats = np.array(values, float)
    assert encoding.class_indices(floats, names).tolist() == encoding.class_indices(floats.tolist(), names).tolist()


POISON = [
    np.full((3, 2, 1), np.nan),
    np.array([0, 1, 2, 3, 4, np.inf]).reshape(3, 2, 1),
    np.array([0, 1, 2, 3, 4, -np.inf]).reshape(3, 2, 1),
    np.zeros((2, 3, 1)),
    np.zeros((3, 2, 3)),
    np.zeros(7),
    np.zeros((3, 2, 1), complex),
    np.full((3, 2, 1), "1"),
    None,
    "text",
    b"\0" * 6,
    7,
    {},
    [[1, 2], [3]],
    [[None, 1], [2, 3], [4, 5]],
    [[10**400, 1], [2, 3], [4, 5]],
    np.array([object()] * 6, object),
]


@pytest.mark.parametrize("place", [0, 3, 6])
@pytest.mark.parametrize("poison", range(len(POISON)))
def test_a_poisoned_record_is_null_and_the_others_are_the_same_bits(poison, place):
    X, y = images(7), [0, 1, 2, "2", 1.0, 0, 1]
    clean_x, clean_c = SCHEMA.encode(list(X), y)
    rows = list(X)
    rows[place] = POISON[poison]
    x, c = SCHEMA.encode(rows, y)
    assert c[place] == -1
    assert not x[place].any()
    others = np.arange(7) != place
    assert x[others].tobytes() == clean_x[others].tobytes()
    assert c[others].tolist() == clean_c[others].tolist()


@pytest.mark.parametrize("label", range(len(NOT_LABELS)))
def test_a_bad_label_is_null_and_the_others_are_the_same_bits(label):
    X, y = images(5), [0, 1.0, "2", 1, 0]
    clean_x, clean_c = SCHEMA.encode(X, y)
    x, c = SCHEMA.encode(X, [*y[:2], NOT_LABELS[label], *y[3:]])
    assert c[2] == -1
    assert not x[2].any()
    others = np.arange(5) != 2
    assert x[others].tobytes() == clean_x[others].tobytes()
    assert c[others].tolist() == clean_c[others].tolist()


any_float = st.floats(width=32) | st.sampled_from([1e38, -1e38, 1e-45, np.nan, np.inf, -0.0])


@given(
    X=hnp.arrays(np.float32, (6, 6), elements=any_float),
    other=hnp.arrays(np.float32, (6,), elements=any_float),
    place=st.integers(0, 5),
)
def test_a_row_depends_on_its_own_record_alone(X, other, place):
    y = np.array([0, 1, 2, 3, 1, 0])
    before = SCHEMA.encode(X, y)
    X = X.copy()
    X[place] = other
    after = SCHEMA.encode(X, y)
    keep = np.arange(6) != place
    assert before[0][keep].tobytes() == after[0][keep].tobytes()
    assert before[1][keep].tolist() == after[1][keep].tolist()
    alone = SCHEMA.encode(X[place : place + 1], y[place : place + 1])
    assert alone[0][0].tobytes() == after[0][place].tobytes()
    assert np.isfinite(after[0]).all()
    assert np.abs(after[0]).max() <= 1
    assert ((after[1] == -1) == (~np.isfinite(X).all(axis=1) | (y == 3))).all()


def test_the_size_of_a_block_changes_nothing(monkeypatch):
    X, y = images(50), np.arange(50) % 4
    X[13, 0] = np.nan
    whole = SCHEMA.encode(X, y)
    monkeypatch.setattr(encoding, "BLOCK", 18)
    for form in (X, list(X)):
        x, c = SCHEMA.encode(form, y)
        assert x.tobytes() == whole[0].tobytes()
        assert c.tolist() == whole[1].tolist()


def test_an_absent_class_changes_nothing():
    X, y = images(6), np.array([0, 1, 0, 1, 0, 1])
    with_two = SCHEMA.encode(X, np.array([0, 1, 0, 1, 0, 2]))
    without = SCHEMA.encode(X, y)
    assert without[0].tobytes() == with_two[0].tobytes()
    assert without[1].tolist()[:5] == with_two[1].tolist()[:5]


def test_numpy_set_to_raise_changes_nothing():
    X = np.array([[1e38, -1e300, np.nan, np.inf, 5e-324, 0.0], [1e300, 1, 2, 3, 4, 5]])
    before = SCHEMA.encode(X, np.array([np.nan, 1e300]))
    with np.errstate(all="raise"):
        for form in (X, list(X), X.astype(object), X.astype(np.longdouble) * np.longdouble("1e300")):
            x, c = SCHEMA.encode(form, np.array([np.nan, 1e300], np.longdouble))
            assert x.tobytes() == before[0].tobytes()
            assert c.tolist() == [-1, -1]


def test_the_records_are_not_changed():
    X, y = images(4) * 3, np.array([0.0, np.nan, 1, 5])
    kept_X, kept_y = X.copy(), y.copy()
    SCHEMA.encode(X, y)
    np.testing.assert_array_equal(X, kept_X)
    np.testing.assert_array_equal(y, kept_y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((2, 2, 3)), [0, 1], r"shape \(2, 2, 3\); \(n, 3, 2, 1\)"),
        (np.zeros((2, 1, 3, 2)), [0, 1], "move the channels last"),
        (np.zeros(6), [0], "shape"),
        (np.float64(1), [0], "shape"),
        (np.zeros((2, 6), complex), [0, 1], "complex128"),
        (np.full((2, 6), "a"), [0, 1], "real numbers"),
        (np.zeros((2, 6)), [0], "2 images with 1 labels"),
        ([np.zeros(6)], [0, 1], "1 images with 2 labels"),
        (np.zeros((2, 6)), np.zeros((2, 3)), r"labels have shape \(2, 3\)"),
        (np.zeros((2, 6)), 3, "labels are of type int"),
        (np.zeros((2, 6)), "01", "labels are of type str"),
        (None, [0], "images are of type NoneType"),
        ({"x": 1}, [0], "images are of type dict"),
    ],
)
def test_what_is_wrong_with_the_whole_is_said(X, y, message):
    with pytest.raises(RequestError, match=message):
        SCHEMA.encode(X, y)


def test_a_tiny_and_a_huge_range():
    tiny = ImageSchema(shape=(1, 2), classes=(0, 1), low=1, high=np.nextafter(1, 2))
    assert tiny.encode([[1.0, 2.0]], [0])[0].ravel().tolist() == [-1, 1]
    huge = ImageSchema(shape=(1, 2), classes=(0, 1), low=-8e307, high=8e307)
    assert huge.encode([[-1e308, 0]], [0])[0].ravel().tolist() == [-1, 0]
