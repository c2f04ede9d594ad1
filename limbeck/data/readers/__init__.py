"""Readers: one file a format, one function to call.

A reader looks at names, headers and shapes. It never judges a record: that is for `ImageSchema.encode`.
"""

import os
from pathlib import Path

from limbeck.data.encoding import misfit
from limbeck.data.images import Images
from limbeck.data.readers import cifar, folder, huggingface, idx, numpy_files, svhn
from limbeck.data.readers.opening import Request, opening
from limbeck.data.schema import ImageSchema
from limbeck.errors import RequestError

# By what they ask for: a suffix or official names first, any folder of pictures last.
READERS = {
    "npz": numpy_files,
    "huggingface": huggingface,
    "cifar": cifar,
    "svhn": svhn,
    "idx": idx,
    "folder": folder,
}
KNOWN = (
    ".npz, .npy, IDX (.gz), CIFAR binary batches (.bin), SVHN (.mat), a folder of pictures by class, "
    "a Hugging Face dataset folder"
)


def read(
    path: str | os.PathLike[str],
    schema: ImageSchema,
    *,
    split: str = "train",
    labels: str | os.PathLike[str] | None = None,
    resize: bool = False,
) -> Images:
    """Read labelled images from a file or a folder of any known kind.

    A file or folder that holds one set is taken for whichever split is asked.

    Args:
        path: what to read.
        schema: what is declared of it; the arrays must have its shape.
        split: "train" or "test".
        labels: the file of the labels, for .npy and IDX, where it is not beside the images.
        resize: bring pictures of another size to the declared one (else each is a null record).

    Raises:
        RequestError: it is missing, damaged, of another kind or of another shape; or it does not say whom the
            records belong to, where the schema's unit is a person.
    """
    path = Path(path)
    if split not in ("train", "test"):
        raise RequestError(f"the split is {split!r}; train or test is expected")
    kind = recognise(path)
    if kind is None:
        raise RequestError(f"{path} is of no known kind; known are {KNOWN}")
    if labels is not None and kind not in ("npz", "idx"):
        raise RequestError(f"{path} holds its own labels; leave out the labels file")
    request = Request(path, schema, split, None if labels is None else Path(labels), resize)
    images = READERS[kind].load(request)
    _check(images, schema)
    return images


def recognise(path: Path) -> str | None:
    """The kind of a file or folder, one of READERS, or None; never by what a record holds."""
    if not path.exists():
        raise RequestError(f"{path} does not exist")
    if _pickled(path):
        raise RequestError(
            f"{path} is a Python pickle, which can run code: pickles are never loaded; "
            "save the arrays with numpy.savez, or get the binary version of CIFAR"
        )
    with opening(path, "a file or folder"):
        return next((kind for kind, reader in READERS.items() if reader.recognises(path)), None)


def _pickled(path: Path) -> bool:
    if path.is_dir():
        return (path / "data_batch_1").is_file() or (path / "cifar-10-batches-py").is_dir()
    if path.suffix.lower() in (".pkl", ".pickle", ".joblib", ".pt", ".pth"):
        return True
    with opening(path, "a file"), path.open("rb") as file:
        # A pickle opens with its protocol; a CIFAR batch may open with any byte.
        start = file.read(2)
    return path.suffix.lower() != ".bin" and len(start) == 2 and start[0] == 0x80 and 2 <= start[1] <= 5


def _check(images: Images, schema: ImageSchema) -> None:
    """What a whole file must satisfy; single records are judged by the schema alone."""
    if hasattr(images.x, "dtype"):
        wrong = misfit(images.x.shape, images.x.dtype, schema.shape)
        if wrong:
            raise RequestError(f"{images.source}: {wrong}")
    n = len(images.x)
    if images.y.shape not in ((n,), (n, 1)):
        raise RequestError(
            f"{images.source}: {n} images with labels of shape {images.y.shape}; one label an image is expected"
        )
    if schema.unit != "person":
        return
    if images.units is None:
        raise RequestError(
            f"{images.source}: the schema's unit is a person, and nothing says whom the records belong to; "
            "give an .npz file with an array `units`, one value a record"
        )
    if images.units.shape != (n,):
        raise RequestError(
            f"{images.source}: {n} records with units of shape {images.units.shape}; one unit a record is expected"
        )
