"""Array formats: what was written is what is read, and a damaged file is said to be one."""

import gzip
import mmap
import pickle

import numpy as np
import pytest
from scipy.io import savemat

from limbeck.data import ImageSchema, read
from limbeck.errors import RequestError
from tests.data.files import cifar_bytes, idx_bytes, random_images, write_idx, write_idx_folder

GREY = ImageSchema(shape=(5, 4), classes=range(10), low=0, high=255)
COLOUR = ImageSchema(shape=(32, 32, 3), classes=range(10), low=0, high=255)
HUNDRED = ImageSchema(shape=(32, 32, 3), classes=range(100), low=0, high=255)
PEOPLE = ImageSchema(shape=(5, 4), classes=range(10), low=0, high=255, unit="person", rows_per_unit=2)

X, Y = random_images(6, (5, 4)), np.array([3, 1, 4, 1, 5, 9], np.uint8)
X2, Y2 = random_images(3, (5, 4), seed=1), np.array([2, 6, 5], np.uint8)


def same(images, x, y):
    np.testing.assert_array_equal(np.asarray(images.x.reveal()), x)
    np.testing.assert_array_equal(np.asarray(images.y.reveal()).ravel(), y)


@pytest.mark.parametrize(
    "names",
    [("x_{}", "y_{}"), ("X_{}", "y_{}"), ("{}_images", "{}_labels")],
)
def test_npz_with_both_splits(tmp_path, names):
    path = tmp_path / "data.npz"
    arrays = {names[0].format("train"): X, names[1].format("train"): Y[:, None]}
    np.savez_compressed(path, **arrays, **{names[0].format("test"): X2, names[1].format("test"): Y2})
    same(read(path, GREY), X, Y)
    same(read(str(path), GREY, split="test"), X2, Y2)
    np.savez(path, **arrays)
    with pytest.raises(RequestError, match=r"data\.npz holds the arrays .*; x_test and y_test"):
        read(path, GREY, split="test")


@pytest.mark.parametrize("names", [("x", "y"), ("X", "y"), ("images", "labels"), ("data", "labels")])
def test_npz_with_one_set_serves_either_split(tmp_path, names):
    np.savez(tmp_path / "data.npz", **dict(zip(names, (X.reshape(6, 20), Y), strict=True)))
    for split in ("train", "test"):
        images = read(tmp_path / "data.npz", GREY, split=split)
        same(images, X.reshape(6, 20), Y)
        np.testing.assert_array_equal(GREY.encode(images.x.reveal(), images.y.reveal())[0], GREY.encode(X, Y)[0])


def test_units_are_found_where_the_unit_is_a_person(tmp_path):
    path, who = tmp_path / "data.npz", np.array(list("aabbcc"))
    np.savez(path, x_train=X, y_train=Y, units_train=who, x_test=X2, y_test=Y2, units_test=who[:3])
    assert read(path, PEOPLE).units.reveal().tolist() == who.tolist()
    assert read(path, PEOPLE, split="test").units.reveal().tolist() == who[:3].tolist()
    assert read(path, GREY).units is None
    np.savez(path, x=X, y=Y, units=np.arange(6))
    assert read(path, PEOPLE).units.reveal().tolist() == list(range(6))
    np.savez(path, x=X, y=Y, units=np.arange(5))
    with pytest.raises(RequestError, match=r"6 records with units of shape \(5,\)"):
        read(path, PEOPLE)
    np.savez(path, x=X, y=Y)
    with pytest.raises(RequestError, match="whom the records belong to"):
        read(path, PEOPLE)


@pytest.mark.parametrize(
    ("image", "label"), [("a.npy", "a.labels.npy"), ("x_train.npy", "y_train.npy"), ("a.npy", "y.npy")]
)
def test_npy_with_labels_beside_it(tmp_path, image, label):
    np.save(tmp_path / image, X)
    with pytest.raises(RequestError, match=r"labels of .* were not found"):
        read(tmp_path / image, GREY)
    np.save(tmp_path / label, Y)
    same(read(tmp_path / image, GREY), X, Y)


def test_npy_with_labels_named_and_units_beside_it(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", Y)
    np.save(tmp_path / "a.units.npy", np.arange(6))
    images = read(tmp_path / "a.npy", PEOPLE, labels=tmp_path / "b.npy")
    same(images, X, Y)
    assert images.units.reveal().tolist() == list(range(6))
    with pytest.raises(RequestError, match=r"none\.npy does not exist"):
        read(tmp_path / "a.npy", GREY, labels=tmp_path / "none.npy")


def test_npy_is_mapped_and_cannot_be_written(tmp_path):
    """A file of a million images takes no memory until it is looked at."""
    np.save(tmp_path / "a.npy", np.asfortranarray(X))
    np.save(tmp_path / "y.npy", Y)
    x = read(tmp_path / "a.npy", GREY).x.reveal()
    assert isinstance(x.base, mmap.mmap)
    assert not x.flags.writeable
    np.save(tmp_path / "a.npy", X[:0])
    np.save(tmp_path / "y.npy", Y[:0])
    same(read(tmp_path / "a.npy", GREY), X[:0], Y[:0])


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([Bomb()], object), allow_pickle=True)
    np.save(tmp_path / "y.npy", Y)
    np.savez(tmp_path / "x.npz", x=np.array([Bomb()], object), y=Y, allow_pickle=True)
    for name in ("a.pkl", "data_batch_1", "renamed.npz", "renamed.npy", "x.mat", "x.idx"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    for path in tmp_path.iterdir():
        if path.name != "y.npy":
            with pytest.raises(RequestError, match=r"pickle|Python objects"):
                read(path, GREY, labels=tmp_path / "y.npy" if path.name == "x.npy" else None)
    with pytest.raises(RequestError, match="binary version"):
        read(tmp_path, COLOUR)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_folder_and_file(tmp_path, suffix):
    write_idx_folder(tmp_path, (X, Y), (X2, Y2), suffix)
    same(read(tmp_path, GREY), X, Y)
    same(read(tmp_path, GREY, split="test"), X2, Y2)
    same(read(tmp_path / f"t10k-images-idx3-ubyte{suffix}", GREY), X2, Y2)
    (tmp_path / f"t10k-images-idx3-ubyte{suffix}").unlink()
    with pytest.raises(RequestError, match="has no test split"):
        read(tmp_path, GREY, split="test")
    (tmp_path / f"train-labels-idx1-ubyte{suffix}").unlink()
    with pytest.raises(RequestError, match=r"labels of .* were not found"):
        read(tmp_path, GREY)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "f4", "f8"])
def test_idx_of_every_type_with_labels_named(tmp_path, dtype):
    write_idx(tmp_path / "scans", (X // 2).astype(dtype))
    write_idx(tmp_path / "classes.gz", Y)
    same(read(tmp_path / "scans", GREY, labels=tmp_path / "classes.gz"), X // 2, Y)


def test_cifar10(tmp_path):
    x, y = random_images(9, (32, 32, 3)), np.arange(9)
    for k, part in enumerate(np.split(np.arange(6), 3), start=1):
        (tmp_path / f"data_batch_{k}.bin").write_bytes(cifar_bytes(x[part], y[part]))
    (tmp_path / "test_batch.bin").write_bytes(cifar_bytes(x[6:], y[6:]))
    same(read(tmp_path, COLOUR), x[:6], y[:6])
    same(read(tmp_path, COLOUR, split="test"), x[6:], y[6:])
    same(read(tmp_path / "data_batch_2.bin", COLOUR), x[2:4], y[2:4])


def test_cifar100_has_coarse_and_fine_labels(tmp_path):
    inner = tmp_path / "cifar-100-binary"
    inner.mkdir()
    x, fine = random_images(4, (32, 32, 3)), np.array([99, 3, 50, 0])
    (inner / "train.bin").write_bytes(cifar_bytes(x, fine // 5, fine))
    same(read(tmp_path, HUNDRED), x, fine)
    with pytest.raises(RequestError, match="has no test split"):
        read(tmp_path, HUNDRED, split="test")


def test_a_length_that_fits_both_cifars_is_settled_by_the_name(tmp_path):
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(b"\3" * (3073 * 3074))
    assert len(read(path, COLOUR)) == 3074
    assert len(read(path.rename(tmp_path / "train.bin"), COLOUR)) == 3073


def test_svhn(tmp_path):
    x, y = random_images(5, (32, 32, 3)), np.array([10, 1, 9, 10, 2], np.uint8)
    savemat(tmp_path / "train_32x32.mat", {"X": x.transpose(1, 2, 3, 0), "y": y[:, None]}, do_compression=True)
    expected = [0, 1, 9, 0, 2]
    same(read(tmp_path, COLOUR), x, expected)
    same(read(tmp_path / "train_32x32.mat", COLOUR, split="test"), x, expected)
    ten = ImageSchema(shape=(32, 32, 3), classes=range(1, 11), low=0, high=255)
    same(read(tmp_path, ten), x, y)
    with pytest.raises(RequestError, match=r"test_32x32\.mat is expected"):
        read(tmp_path, COLOUR, split="test")
    savemat(tmp_path / "train_32x32.mat", {"X": x.transpose(1, 2, 3, 0), "y": y[:3]})
    with pytest.raises(RequestError, match="must hold X"):
        read(tmp_path, COLOUR)


def write_all(folder):
    """A good file of each kind that one may truncate, with the schema that reads it."""
    np.savez(folder / "a.npz", x=X, y=Y)
    np.savez_compressed(folder / "b.npz", x=X, y=Y)
    np.save(folder / "c.npy", X)
    np.save(folder / "c.labels.npy", Y)
    write_idx_folder(folder, (X, Y), (X2, Y2), "")
    write_idx_folder(folder, (X, Y), (X2, Y2), ".gz")
    x = random_images(3, (32, 32, 3))
    (folder / "data_batch_1.bin").write_bytes(cifar_bytes(x, Y[:3]))
    savemat(folder / "d.mat", {"X": x.transpose(1, 2, 3, 0), "y": Y[:3]}, do_compression=True)
    grey = ["a.npz", "b.npz", "c.npy", "train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"]
    return [(folder / n, GREY) for n in grey] + [(folder / n, COLOUR) for n in ("data_batch_1.bin", "d.mat")]


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    for path, schema in write_all(tmp_path):
        read(path, schema)
        content = path.read_bytes()
        for length in (0, 1, 3, 10, len(content) // 2, len(content) - 9, len(content) - 1):
            path.write_bytes(content[:length])
            with pytest.raises(RequestError, match=path.name):
                read(path, schema)
        path.write_bytes(content)


def test_truncated_labels_are_refused(tmp_path):
    write_all(tmp_path)
    for images, labels in (
        ("c.npy", "c.labels.npy"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    ):
        content = (tmp_path / labels).read_bytes()
        (tmp_path / labels).write_bytes(content[:-3])
        with pytest.raises(RequestError, match=labels):
            read(tmp_path / images, GREY)


def test_bytes_after_the_end_of_an_idx_file_are_refused(tmp_path):
    write_idx(tmp_path / "train-labels-idx1-ubyte", Y)
    for content in (idx_bytes(X) + b"\0", gzip.compress(idx_bytes(X) + b"\0")):
        (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
        with pytest.raises(RequestError, match="damaged"):
            read(tmp_path / "train-images-idx3-ubyte", GREY)


def test_a_shape_that_is_not_declared_is_refused(tmp_path):
    for path, schema in write_all(tmp_path):
        other = COLOUR if schema is GREY else GREY
        with pytest.raises(RequestError, match=rf"{path.name}.* shape .* expected by the schema"):
            read(path, other)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X, "y": Y[:5]}, r"6 images with labels of shape \(5,\)"),
        ({"x": X, "y": np.zeros((6, 10))}, r"labels of shape \(6, 10\)"),
        ({"x": X, "y": np.uint8(3)}, r"labels of shape \(\)"),
        ({"x": np.uint8(3), "y": Y}, r"shape \(\)"),
        ({"x": X.astype(str), "y": Y}, "real numbers are expected"),
        ({"x": X}, "holds the arrays x;"),
        ({}, r"holds the arrays \(none\)"),
    ],
)
def test_arrays_that_do_not_go_together(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(RequestError, match=message):
        read(tmp_path / "a.npz", GREY)


def test_no_known_kind(tmp_path):
    (tmp_path / "a.txt").write_text("hello, this is text")
    (tmp_path / "b.npz").write_text("hello, this is text")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("a.txt", "no known kind"),
        ("b.npz", "cannot be read"),
        ("empty", "no known kind"),
    ):
        with pytest.raises(RequestError, match=message):
            read(tmp_path / name, GREY)
    with pytest.raises(RequestError, match="does not exist"):
        read(tmp_path / "none.npz", GREY)
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    with pytest.raises(RequestError, match="train or test"):
        read(tmp_path / "a.npz", GREY, split="valid")
    with pytest.raises(RequestError, match="its own labels"):
        read(tmp_path / "a.npz", GREY, labels=tmp_path / "y.npy")


def test_records_do_not_show_when_printed(tmp_path):
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    images = read(tmp_path / "a.npz", GREY)
    assert len(images) == 6
    assert repr(images) == f"Images(6 records from {str(tmp_path / 'a.npz')!r})"
    assert repr([images.x, images.y]) == "[Private(6 records), Private(6 records)]"
