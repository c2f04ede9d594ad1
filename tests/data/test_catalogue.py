"""The catalogue: every entry is whole, and each is found in the places where people keep it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import load_digits

import limbeck.errors
from limbeck.data import entry, known, load
from limbeck.data.catalogue import find
from limbeck.errors import RequestError
from tests.data.files import cifar_bytes, random_images, write_idx_folder

REMOTE = [name for name in known() if name != "digits"]


def test_the_entries_are_whole():
    assert known() == ("digits", "mnist", "fashion_mnist", "cifar10", "cifar100", "svhn")
    for name in REMOTE:
        dataset = entry(name)
        assert dataset.name == name
        assert dataset.schema.low == 0
        assert dataset.schema.high == 255
        assert dataset.homepage.startswith("http")
        assert dataset.folders
        for file in dataset.files:
            assert file.url.startswith("http")
            assert int(file.sha256, 16) < 2**256
            assert len(file.sha256) == 64
            assert file.size > 1000
    hashes = [file.sha256 for name in REMOTE for file in entry(name).files]
    assert len(hashes) == len(set(hashes)) == 12


def test_an_unknown_name():
    with pytest.raises(RequestError, match="'minst'; known are digits, mnist"):
        load("minst")


def test_digits_are_embedded_and_split_for_good():
    schema, train, test = entry("digits").schema, load("digits"), load("digits", "test")
    assert (len(train), len(test)) == (1437, 360)
    assert entry("digits").records == {"train": 1437, "test": 360}
    for images in (train, test):
        x, c = schema.encode(images.x.reveal(), images.y.reveal())
        assert x.shape[1:] == (8, 8, 1)
        assert set(c.tolist()) == set(range(10))
        assert (x.min(), x.max()) == (-1, 1)
    whole = load_digits()
    np.testing.assert_array_equal(np.concatenate([train.x.reveal(), test.x.reveal()]), whole.images)
    np.testing.assert_array_equal(np.concatenate([train.y.reveal(), test.y.reveal()]), whole.target)
    with pytest.raises(RequestError, match="train or test"):
        load("digits", "valid")


@pytest.mark.parametrize("name", REMOTE)
def test_an_absent_dataset_says_what_to_do(tmp_path, name):
    with pytest.raises(RequestError, match=rf"limbeck data get {name}.*{name}\.npz.*--data-dir or LIMBECK_DATA"):
        load(name, data_dir=tmp_path)


@pytest.mark.parametrize("name", REMOTE)
def test_npz_by_name(tmp_path, name):
    schema = entry(name).schema
    x, y = random_images(4, schema.shape), np.array([0, 9, 5, 5])
    np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
    np.testing.assert_array_equal(load(name, data_dir=tmp_path).x.reveal(), x)
    assert len(load(name, "test", tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "folder"),
    [(name, folder) for name in ("mnist", "fashion_mnist") for folder in entry(name).folders],
)
def test_official_idx_folders(tmp_path, name, folder):
    x, y = random_images(4, (28, 28)), np.arange(4, dtype=np.uint8)
    write_idx_folder(tmp_path / folder, (x, y), (x[:2], y[:2]))
    images = load(name, data_dir=tmp_path)
    np.testing.assert_array_equal(images.x.reveal(), x)
    np.testing.assert_array_equal(images.y.reveal(), y)
    assert len(load(name, "test", tmp_path)) == 2


@pytest.mark.parametrize("folder", ["cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"])
def test_official_cifar10_folders(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    x, y = random_images(2, (32, 32, 3)), np.array([3, 8])
    (tmp_path / folder / "data_batch_1.bin").write_bytes(cifar_bytes(x, y))
    np.testing.assert_array_equal(load("cifar10", data_dir=tmp_path).x.reveal(), x)


@pytest.mark.parametrize("folder", ["cifar-100-binary", "cifar100/cifar-100-binary"])
def test_official_cifar100_folders(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    x, y = random_images(2, (32, 32, 3)), np.array([3, 98])
    (tmp_path / folder / "test.bin").write_bytes(cifar_bytes(x, y // 5, y))
    assert load("cifar100", "test", tmp_path).y.reveal().tolist() == [3, 98]


def test_the_official_svhn_folder(tmp_path):
    (tmp_path / "svhn").mkdir()
    x, y = random_images(2, (32, 32, 3)), np.array([10, 8])
    savemat(tmp_path / "svhn" / "train_32x32.mat", {"X": x.transpose(1, 2, 3, 0), "y": y})
    assert load("svhn", data_dir=tmp_path).y.reveal().tolist() == [0, 8]


def test_the_place_is_the_option_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    x, y = random_images(1, (28, 28)), np.array([1])
    for k, place in enumerate(("option", "variable", "home/.cache/limbeck/data"), start=1):
        (tmp_path / place).mkdir(parents=True)
        np.savez(tmp_path / place / "mnist.npz", x=np.repeat(x, k, 0), y=np.repeat(y, k))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LIMBECK_DATA", str(tmp_path / "variable"))
    assert len(load("mnist", data_dir=tmp_path / "option")) == 1
    assert len(load("mnist")) == 2
    monkeypatch.delenv("LIMBECK_DATA")
    assert len(load("mnist")) == 3


def test_a_folder_of_something_else_is_passed_by(tmp_path):
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "sheet.webp").write_bytes(b"x")
    assert find(entry("cifar10"), tmp_path) is None


IMPORT = """
import sys, types
sys.modules["limbeck"] = package = types.ModuleType("limbeck")  # this part alone
package.__path__ = [sys.argv[1]]
import limbeck.data, limbeck.data.download, limbeck.data.check
print({"scipy", "sklearn", "PIL", "datasets", "jax", "pandas"} & set(sys.modules))
"""


def test_importing_is_light():
    command = [sys.executable, "-c", IMPORT, str(Path(limbeck.errors.__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
