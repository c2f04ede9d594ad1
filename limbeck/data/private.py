"""Private records in a closed wrapper: they can be counted and passed on, and leave only through one door."""

from operator import length_hint
from typing import Any, final


class PrivateError(TypeError, AttributeError):
    """Somebody tried to show, convert, copy or save private records. An AttributeError too: `hasattr` is False."""


def _refuse(*_: Any, **__: Any) -> Any:
    raise PrivateError(
        "private records are not shown, converted, copied or saved: they leave only through a measurement "
        "(see limbeck.measure.Session)"
    )


@final
class Private:
    """An array or a list with one item a record, which nothing reads by accident.

    How many records there are and what form they have is public; what they hold is not (GUARANTEE, property 11).
    Printing, formatting, pickling, copying, saving, iterating, indexing and converting raise a `PrivateError`, and
    `repr`, which tracebacks and debuggers call, shows the count alone. Wrapping what is wrapped changes nothing.

    It guards against accidents, not against whoever owns the process.
    """

    __slots__ = ("__records",)

    def __init__(self, records: Any):
        self.__records: Any = records.__records if isinstance(records, Private) else records

    def reveal(self) -> Any:
        """The door: the records themselves.

        For the measuring side (`limbeck.measure.Records`), whose answers are clipped and noised, and for what a
        custodian does outside the guarantee by name (check, evaluate, predict, the demo on public data). Every
        caller is listed with its reason in `tests/data/test_doors.py`, which fails on any other.
        """
        return self.__records

    def __len__(self) -> int:
        return len(self.__records)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array; of a list, its length."""
        return self.__records.shape if hasattr(self.__records, "shape") else (len(self),)

    @property
    def dtype(self) -> Any:
        """The type of an array; a list has none."""
        return self.__records.dtype

    def __repr__(self) -> str:
        return f"Private({length_hint(self.__records)} records)"

    __str__ = __format__ = __bytes__ = __reduce_ex__ = _refuse
    __iter__ = __getitem__ = __contains__ = __reversed__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = _refuse
    __array__ = __getattr__ = _refuse
    __array_ufunc__ = None
