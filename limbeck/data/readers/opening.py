"""What is common to the readers: what they are asked, and how a file that cannot be read is reported."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limbeck.data.schema import ImageSchema
from limbeck.errors import RequestError


@dataclass(frozen=True)
class Request:
    """A question to a reader: the records of one split of what is at a path."""

    path: Path
    schema: ImageSchema
    split: str = "train"
    labels: Path | None = None
    resize: bool = False


@contextmanager
def opening(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever a parser raises into one message about the file; keep its warnings quiet.

    Parsers of damaged files raise nearly anything, with pieces of the file in the message: neither the
    message nor the traceback goes on.
    """
    with warnings.catch_warnings(), readable(path, kind):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def readable(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """The same without the warnings, which are the whole process's: for a file that is read a piece at a time."""
    try:
        yield
    except RequestError:
        raise
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist") from None
    except PermissionError:
        raise RequestError(f"{path} may not be read by this user") from None
    except Exception:
        raise RequestError(
            f"{path} cannot be read as {kind}: it is truncated, damaged or of another kind; copy it again"
        ) from None


def load_array(path: Path) -> np.ndarray:
    """One array from a .npy file, mapped: it takes no memory until it is looked at. Never a pickle."""
    with opening(path, "a .npy file without Python objects"):
        return np.lib.format.open_memmap(path, mode="r")
