"""A private array is counted and passed on; everything else that Python, NumPy or JAX can do with one is refused."""

import copy
import dataclasses
import io
import json
import logging
import pickle
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError, jaxtyped

from limbeck.data import Images
from limbeck.data.private import Private, PrivateError
from tests import check

SECRET = 0.8675309
SIGN = "86753"  # of the secret, in any form of it
FORMS = {"array": np.full((3, 2), SECRET), "list": [SECRET] * 3}

REFUSED = {
    "str": str,
    "print": print,
    "f-string": lambda p: f"{p}",
    "format": lambda p: f"{p:.3f}",
    "percent": lambda p: "%s" % p,  # noqa: UP031
    "int": int,
    "float": float,
    "complex": complex,
    "bytes": bytes,
    "memoryview": memoryview,
    "iteration": list,
    "unpacking": lambda p: [*p],
    "reversed": reversed,
    "sorted": sorted,
    "sum": sum,
    "index": lambda p: p[0],
    "slice": lambda p: p[:1],
    "membership": lambda p: SECRET in p,
    "comparison": lambda p: p < 1,
    "addition": lambda p: p + 1,
    "attribute": lambda p: p.mean(),
    "tolist": lambda p: p.tolist(),
    "tobytes": lambda p: p.tobytes(),
    "dict": vars,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": json.dumps,
    "asarray": np.asarray,
    "array of it": lambda p: np.array([p]),
    "concatenate": lambda p: np.concatenate([p, p]),
    "assignment": lambda p: np.zeros((3, 2)).__setitem__(slice(None), p),
    "ufunc": np.sqrt,
    "array + it": lambda p: np.ones((3, 2)) + p,
    "numpy mean": np.mean,
    "array2string": np.array2string,
    "array interface": lambda p: p.__array_interface__,
    "array struct": lambda p: p.__array_struct__,
    "frombuffer": np.frombuffer,
    "save": lambda p: np.save(io.BytesIO(), p),
    "savez": lambda p: np.savez(io.BytesIO(), x=p),
    "savetxt": lambda p: np.savetxt(io.StringIO(), p),
    "dlpack": np.from_dlpack,
    "jax dlpack": jnp.from_dlpack,
    "jnp.asarray": jnp.asarray,
    "device_put": jax.device_put,
    "jit": jax.jit(lambda x: x),
    "jax array + it": lambda p: jnp.ones((3, 2)) + p,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", REFUSED)
def test_every_way_out_is_refused_without_a_value(way, form, capfd):
    private = Private(FORMS[form])
    with pytest.raises(TypeError) as refusal:
        REFUSED[way](private)
    assert SIGN not in "".join(traceback.format_exception(refusal.value))
    assert SIGN not in "".join(capfd.readouterr())


def test_the_refusal_says_what_to_do():
    with pytest.raises(PrivateError, match=r"only through a measurement \(see limbeck\.measure\.Session\)"):
        str(Private([SECRET]))


@pytest.mark.parametrize("form", FORMS)
def test_the_count_and_the_form_are_public(form):
    private = Private(FORMS[form])
    assert len(private) == 3
    assert repr(private) == "Private(3 records)"
    assert private.shape == np.shape(FORMS[form])[: 2 if form == "array" else 1]
    assert getattr(private, "dtype", None) == getattr(FORMS[form], "dtype", None)
    assert private.reveal() is FORMS[form]
    assert Private(private).reveal() is FORMS[form]
    assert not hasattr(private, "mean")
    assert private != FORMS[form]


@pytest.mark.parametrize("value", [SECRET, np.float64(SECRET), None, (v for v in [SECRET])])
def test_what_has_no_length_is_not_shown_either(value):
    assert repr(Private(value)) == "Private(0 records)"


@dataclasses.dataclass
class Holder:
    x: Private


def test_what_holds_private_records_is_refused_with_them():
    images, holder = Images(FORMS["array"], FORMS["list"], names=("a", "b", "c")), Holder(Private(FORMS["array"]))
    assert repr(holder).endswith("Holder(x=Private(3 records))")
    assert SIGN not in f"{images} {images!r} {vars(images)} {vars(holder)}"
    for refused in (pickle.dumps, copy.deepcopy):
        for thing in (images, holder):
            with pytest.raises(PrivateError):
                refused(thing)
    with pytest.raises(PrivateError):
        dataclasses.asdict(holder)


def test_a_log_line_carries_no_value(caplog, capfd, monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("test").warning("%r of %s", Private(FORMS["list"]), "a file")
    assert "Private(3 records) of a file" in caplog.text
    assert SIGN not in caplog.text + "".join(capfd.readouterr())


def test_a_type_check_at_run_time_shows_no_values():
    """beartype quotes what came to the wrong place: a wrapped array as a count, a bare one in full.

    So the package never turns such checks on: only its tests do (see `test_doors`).
    """

    @jaxtyped(typechecker=check)
    def f(x: Float[np.ndarray, "n 5"]) -> None: ...

    with pytest.raises(TypeCheckError) as error:
        f(Private(FORMS["array"]))
    text = "".join(traceback.format_exception(error.value))
    assert "Private(3 records)" in text
    assert SIGN not in text
