"""Known datasets by name: their schema, where they are looked for, and where they come from."""

import os
from dataclasses import dataclass
from pathlib import Path

from limbeck.data.images import Images
from limbeck.data.readers import read, recognise
from limbeck.data.schema import ImageSchema
from limbeck.errors import RequestError

DIGITS_TEST = 360  # the last records of scikit-learn's digits are the test split: a fifth of 1797


@dataclass(frozen=True)
class RemoteFile:
    """A file at its official address, and what it must be."""

    url: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Entry:
    """One known dataset.

    Attributes:
        name: what it is called here, and its folder below the data folder.
        title: what people call it.
        schema: shape, classes and range, all public.
        records: the number of records of each split.
        licence: the terms, as their owners state them.
        homepage: where it is described.
        reader: the kind of its official files, one of `readers.READERS`; "embedded" needs none.
        folders: where its official files may be below the data folder, in the order tried.
        files: what `limbeck data get` fetches.
    """

    name: str
    title: str
    schema: ImageSchema
    records: dict[str, int]
    licence: str
    homepage: str
    reader: str
    folders: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()


def known() -> tuple[str, ...]:
    """The names of the catalogue."""
    return tuple(ENTRIES)


def entry(name: str) -> Entry:
    """One dataset of the catalogue."""
    if name not in ENTRIES:
        raise RequestError(f"no dataset is called {name!r}; known are {', '.join(ENTRIES)}")
    return ENTRIES[name]


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the datasets: the one given, LIMBECK_DATA, or the user's cache."""
    given = data_dir or os.environ.get("LIMBECK_DATA")
    return Path(given) if given else Path.home() / ".cache" / "limbeck" / "data"


def find(dataset: Entry, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Where a dataset is: NAME.npz, or else a folder with its official files; None where it is not."""
    root = data_folder(data_dir)
    if (root / f"{dataset.name}.npz").is_file():
        return root / f"{dataset.name}.npz"
    folders = [root / folder for folder in dataset.folders if (root / folder).is_dir()]
    return next((folder for folder in folders if recognise(folder) == dataset.reader), None)


def load(name: str, split: str = "train", data_dir: str | os.PathLike[str] | None = None) -> Images:
    """The records of one split of a known dataset.

    Raises:
        RequestError: the name is not known, or its files are not in the data folder.
    """
    dataset = entry(name)
    if dataset.reader == "embedded":
        return _digits(split)
    path = find(dataset, data_dir)
    if path is None:
        raise RequestError(
            f"{name} is not in {data_folder(data_dir)}: fetch it with `limbeck data get {name}`, or say "
            f"where {name}.npz or its official files are with --data-dir or LIMBECK_DATA"
        )
    return read(path, dataset.schema, split=split)


def _digits(split: str) -> Images:
    from sklearn.datasets import load_digits

    if split not in ("train", "test"):
        raise RequestError(f"the split is {split!r}; train or test is expected")
    digits = load_digits()
    part = slice(-DIGITS_TEST) if split == "train" else slice(-DIGITS_TEST, None)
    return Images(digits.images[part], digits.target[part], source=f"digits ({split})")


def _grey(side: int, high: int) -> ImageSchema:
    return ImageSchema(shape=(side, side, 1), classes=range(10), low=0, high=high)


def _colour(classes: int) -> ImageSchema:
    return ImageSchema(shape=(32, 32, 3), classes=range(classes), low=0, high=255)


def _remote(listing: str) -> tuple[RemoteFile, ...]:
    base, *lines = listing.strip().splitlines()
    files = [line.split() for line in lines]
    return tuple(RemoteFile(f"{base}/{name}", sha256, int(size)) for name, size, sha256 in files)


# Where the official files are; then name, bytes and SHA-256 of each.
MNIST = """
https://storage.googleapis.com/cvdf-datasets/mnist
train-images-idx3-ubyte.gz 9912422 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
train-labels-idx1-ubyte.gz 28881 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
t10k-images-idx3-ubyte.gz 1648877 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
t10k-labels-idx1-ubyte.gz 4542 f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
"""
FASHION_MNIST = """
http://fashion-mnist.s3-website.eu-central-1.amazonaws.com
train-images-idx3-ubyte.gz 26421880 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
train-labels-idx1-ubyte.gz 29515 a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
t10k-images-idx3-ubyte.gz 4422102 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
t10k-labels-idx1-ubyte.gz 5148 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
"""
CIFAR10 = """
https://www.cs.toronto.edu/~kriz
cifar-10-binary.tar.gz 170052171 c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd
"""
CIFAR100 = """
https://www.cs.toronto.edu/~kriz
cifar-100-binary.tar.gz 168513733 58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec
"""
SVHN = """
http://ufldl.stanford.edu/housenumbers
train_32x32.mat 182040794 435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8
test_32x32.mat 64275384 cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b
"""

ENTRIES = {
    dataset.name: dataset
    for dataset in (
        Entry(
            name="digits",
            title="Optical recognition of handwritten digits (the copy in scikit-learn)",
            schema=_grey(8, 16),
            records={"train": 1797 - DIGITS_TEST, "test": DIGITS_TEST},
            licence="CC BY 4.0",
            homepage="https://archive.ics.uci.edu/dataset/80",
            reader="embedded",
        ),
        Entry(
            name="mnist",
            title="MNIST",
            schema=_grey(28, 255),
            records={"train": 60_000, "test": 10_000},
            licence="CC BY-SA 3.0",
            homepage="http://yann.lecun.com/exdb/mnist/",
            reader="idx",
            folders=("mnist", "mnist/raw", "MNIST/raw"),
            files=_remote(MNIST),
        ),
        Entry(
            name="fashion_mnist",
            title="Fashion-MNIST",
            schema=_grey(28, 255),
            records={"train": 60_000, "test": 10_000},
            licence="MIT",
            homepage="https://github.com/zalandoresearch/fashion-mnist",
            reader="idx",
            folders=("fashion_mnist", "fashion-mnist", "FashionMNIST/raw"),
            files=_remote(FASHION_MNIST),
        ),
        Entry(
            name="cifar10",
            title="CIFAR-10",
            schema=_colour(10),
            records={"train": 50_000, "test": 10_000},
            licence="none stated; cite Krizhevsky (2009)",
            homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
            reader="cifar",
            folders=("cifar10", "cifar-10-batches-bin"),
            files=_remote(CIFAR10),
        ),
        Entry(
            name="cifar100",
            title="CIFAR-100",
            schema=_colour(100),
            records={"train": 50_000, "test": 10_000},
            licence="none stated; cite Krizhevsky (2009)",
            homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
            reader="cifar",
            folders=("cifar100", "cifar-100-binary"),
            files=_remote(CIFAR100),
        ),
        Entry(
            name="svhn",
            title="Street View House Numbers, cropped digits",
            schema=_colour(10),
            records={"train": 73_257, "test": 26_032},
            licence="non-commercial use only",
            homepage="http://ufldl.stanford.edu/housenumbers/",
            reader="svhn",
            folders=("svhn", "SVHN"),
            files=_remote(SVHN),
        ),
    )
}
