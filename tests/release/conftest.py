"""A small release on a full-batch plan, whose price is quick to recompute, and a forger's tools."""

import json
import shutil

import numpy as np
import pytest

from limbeck.data import ImageSchema
from limbeck.features import named
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from limbeck.release import Release
from limbeck.release.certificate import digest_of
from limbeck.release.contents import file_digest

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("cat", "dog"), low=0, high=255)
PLAN = Plan(measurements=(Measurement(name="g", sampling=FullBatch(n=500), steps=4, clip=0.5, sigma=7.5),), delta=1e-5)
RECIPE = {
    "method": "DPKIP",
    "per_class": 2,
    "features": named("fc-ntk", SCHEMA.shape).config(),
    "ridge": 1e-3,
    "epsilon": 1.0,
    "delta": 1e-5,
    "steps": 4,
    "clip_norm": 0.5,
    "noise": "normal",
    "batch": "full",
    "relation": "zero-out",
    "unit": "record",
}


def make(guarantee=None, plan=PLAN, **fields) -> Release:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 4, 4, 1)).astype(np.float32)
    y = np.repeat(np.eye(2, dtype=np.float32) - 0.5, 2, axis=0)
    return Release.of(SCHEMA, x, y, guarantee or Guarantee.of(plan, seeded=False), RECIPE | fields, plan)


def planned(**measurement) -> Plan:
    """PLAN with another measurement."""
    (m,) = PLAN.measurements
    return PLAN.model_copy(update={"measurements": (m.model_copy(update=measurement),)})


def edit(path, change) -> None:
    """Change a JSON file, and nothing else."""
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw, indent=1))


def mend(folder) -> None:
    """What a forger does after an edit: all hashes, digests and seals as they should be."""

    def mended(raw):
        raw["files"] = {name: file_digest(folder / name) for name in raw["files"]}
        raw["public_inputs"]["recipe"] = digest_of(json.loads((folder / "recipe.json").read_text()))
        raw["public_inputs"]["schema"] = ImageSchema.from_json(folder / "schema.json").digest()
        raw["seal"] = {name: digest_of(value) for name, value in raw.items() if name != "seal"}

    edit(folder / "certificate.json", mended)


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    return make().save(tmp_path_factory.mktemp("out") / "release")


@pytest.fixture
def copy(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "release")
    return tmp_path / "release"
