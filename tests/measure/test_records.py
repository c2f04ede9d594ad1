"""Records are closed, and whatever goes wrong with them, no message quotes one."""

import copy
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.data import ImageSchema
from limbeck.data.private import Private
from limbeck.distill import DPKIP
from limbeck.errors import RequestError
from limbeck.features import named
from limbeck.measure import Records, Session
from limbeck.privacy.plan import FullBatch, Measurement, Plan

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("a", "b"), low=0, high=1)
PEOPLE = SCHEMA.model_copy(update={"unit": "person", "rows_per_unit": 2})
SECRET = 0.8675309
X = np.full((6, 4, 4), SECRET)
Y = ["a", "b"] * 3
# The secret as it comes in, and as it is encoded.
SIGNS = ("86753", f"{2 * SECRET - 1:.5f}"[:6], "jenny")


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def silent(text: str) -> bool:
    return not any(sign in text for sign in SIGNS)


def records(features: str = "fc-ntk") -> Records:
    made = Records(SCHEMA, X, Y)
    made.prepare(named(features, SCHEMA.shape))
    return made


def session() -> Session:
    measurement = Measurement(name="g", sampling=FullBatch(n=6), steps=9, clip=1.0, sigma=1.0)
    return Session(records(), Plan(measurements=(measurement,), delta=1e-5), chunk=2)


@pytest.mark.parametrize("features", ["fc-ntk", "scattering"])
def test_everything_that_records_hold_is_closed(features):
    held = vars(records(features)) | vars(Records(PEOPLE, X, Y, ["jenny"] * 6))
    assert silent(repr(held))
    assert not any(isinstance(v, np.ndarray | list) for v in held.values())
    for refused in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="only through a measurement"):
            refused(records())


def test_wrapped_and_plain_records_are_the_same():
    plain, wrapped = Records(PEOPLE, X, Y, list("ppqqrr")), Records(PEOPLE, *map(Private, (X, Y, list("ppqqrr"))))
    for made in (plain, wrapped):
        made.prepare(named("fc-ntk", SCHEMA.shape))
    batches = [made.batch(np.array([0, 2, -1])) for made in (plain, wrapped)]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*batches, strict=True))


def test_nothing_is_copied_that_was_not_copied_before():
    private = Private(X)
    assert private.reveal() is X
    assert np.shares_memory(records()._given.reveal(), X)


WRONG = {
    "another shape": (X[:, :3], Y, None),
    "too few labels": (X, ["jenny"] * 5, None),
    "labels of two columns": (X, np.array([["jenny", "b"]] * 6), None),
    "text for images": (np.full((6, 4, 4), "jenny"), Y, None),
    "a word for images": ("jenny", Y, None),
    "a word for labels": (X, "jenny", None),
    "a dictionary of images": ({"jenny": X}, Y, None),
    "a number for images": (SECRET, Y, None),
    "one number": (np.float64(SECRET), Y, None),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_records_that_do_not_fit_as_a_whole_are_not_quoted(wrong):
    with pytest.raises(RequestError) as error:
        Records(SCHEMA, *WRONG[wrong])
    assert silent(said(error.value))
    with pytest.raises(RequestError) as error:
        DPKIP(SCHEMA, features="fc-ntk").fit_resample(*WRONG[wrong][:2])
    assert silent(said(error.value))


@pytest.mark.parametrize("units", [None, ["jenny"] * 5, np.array([["jenny"]] * 5)])
def test_units_that_do_not_fit_are_not_quoted(units):
    with pytest.raises(RequestError, match="6 expected") as error:
        Records(PEOPLE, X, Y, units)
    assert silent(said(error.value))


@pytest.mark.parametrize(
    ("units", "n"),
    [
        ([b"jenny\xe9", b"p", "p", 1, 1.0, None], 6),
        (np.array([b"jenny\xe9", b"p"] * 3), 2),
        ([["jenny"], [1, 2], [1, 2], np.zeros((2, 2)), {}, {}], 4),
        (np.array([[1], [1], [2], [2], [3], [3]]), 3),
        (["p", "p\0", "x" * 10_000, "\ud800", "", ""], 5),
        ([10**5000, 10**6000, Private(["jenny"]), "", "p", "p"], 2),
    ],
)
def test_a_unit_may_be_called_anything(units, n):
    assert Records(PEOPLE, X, Y, units).n == n


BAD = [np.full((3, 3), SECRET), ["jenny"], None, "jenny", np.full((4, 4), "jenny"), {"jenny": 1}]


def test_bad_records_are_silent(capfd, caplog):
    made = Records(SCHEMA, BAD, ["jenny", SECRET, None, b"jenny\xe9", ["jenny"], 10**40])
    made.prepare(named("fc-ntk", SCHEMA.shape))
    inputs, y = made.batch(np.arange(6))
    assert not inputs.any()
    assert np.isnan(y).all()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


class Failing(eqx.Module):
    """A query that fails, in one of many ways, while it holds records, and says as much as it can."""

    way: str = eqx.field(static=True)

    def contributions(self, inputs, y):
        if self.way == "raise":
            raise ValueError(f"failed on {inputs} and {y}")
        if self.way == "shape":
            return inputs @ jnp.zeros((3, 3))
        if self.way == "float":
            return float(inputs[0, 0, 0])
        if self.way == "numpy":
            return np.asarray(inputs)
        if self.way == "if":
            return inputs if inputs.sum() > 0 else y
        if self.way == "index":
            return inputs[:, int(inputs[0, 0, 0])]
        if self.way == "key":
            return {0: 1}[inputs[0, 0, 0]]
        if self.way == "XLA":
            return eqx.error_if(inputs, inputs > 0, "the compiled program stopped")
        raise AssertionError(self.way)

    def decoded(self, total):
        return total

    def mean(self, inputs, y):
        return self.contributions(inputs, y)


# What equinox writes about a program that stopped, and does so as a warning in some versions.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["raise", "shape", "float", "numpy", "if", "index", "key", "XLA"])
def test_a_failing_query_quotes_no_record(way, capfd, caplog):
    with pytest.raises(Exception) as error:  # noqa: PT011
        session().ask("g", lambda: Failing(way))
    assert silent(said(error.value))
    assert silent("".join(capfd.readouterr()) + caplog.text)


def test_a_batch_of_the_wrong_units_quotes_no_record():
    for units in (np.array([99]), np.array([[0]]), np.array([0.5])):
        with pytest.raises(Exception) as error:  # noqa: PT011
            records().batch(units)
        assert silent(said(error.value))


def test_an_error_in_a_worker_quotes_no_record():
    with ThreadPoolExecutor(1) as pool:
        failed = pool.submit(session().ask, "g", lambda: Failing("raise"))
        assert silent(said(failed.exception()))
