"""What a run will take: features in a file take disk and no memory, and images are as they were given."""

import shutil

import pytest

from limbeck.data import ImageSchema
from limbeck.distill import DPKIP, Decant
from limbeck.distill.cost import RAW, check_memory, expected_memory
from limbeck.errors import RequestError
from limbeck.features import Scattering
from limbeck.measure import store

SCHEMA = ImageSchema(shape=(28, 28, 1), classes=range(10), low=0, high=255)
PIXELS = 28 * 28
MODELS = {
    "decant": (Decant(SCHEMA), Scattering(SCHEMA.shape).dim),
    "scattering": (DPKIP(SCHEMA, features="scattering"), Scattering(SCHEMA.shape).dim),
    "fc-ntk": (DPKIP(SCHEMA, features="fc-ntk"), PIXELS),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_record_takes_its_pixels_as_given_and_its_features_unless_they_are_in_a_file(name, monkeypatch):
    model, F = MODELS[name]
    more = expected_memory(model, 3000) - expected_memory(model, 1000)
    assert more == 2000 * (RAW * PIXELS + 4 * F)
    monkeypatch.setattr(store, "SHARE", 0)
    assert expected_memory(model, 3000) - expected_memory(model, 1000) == 2000 * RAW * PIXELS


def test_a_million_images_are_a_matter_of_disk(monkeypatch):
    model, F = MODELS["decant"]
    monkeypatch.setattr(store, "physical_memory", lambda: 8 * 2**30)
    monkeypatch.setattr("limbeck.distill.cost.physical_memory", lambda: 8 * 2**30)
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4 * F * 10**6))
    check_memory(model, 10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4 * F * 10**6 - 1))
    with pytest.raises(RequestError, match=r"on disk.*LIMBECK_CACHE"):
        check_memory(model, 10**6)
