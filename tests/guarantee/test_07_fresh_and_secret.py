"""Property 7. Noise and sampling come from a fresh, secret, cryptographic stream; a seed is for tests, and says so."""

import copy
import pickle
import secrets

import numpy as np
import pytest

from limbeck.measure import Session
from limbeck.privacy import stream as stream_module
from limbeck.privacy.plan import FullBatch
from limbeck.privacy.stream import Stream
from limbeck.release import load, verify
from tests.guarantee.problem import FAMILIES, NOISES, N, data, noise, null_records, plan, query, tiny


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_noise_is_fresh_at_every_answer(family, kind):
    z = noise(family, kind, answers=12, sigma=5.0)
    assert len({row.tobytes() for row in z}) == 12
    assert np.abs(np.corrcoef(z) - np.eye(12)).max() < 0.75  # of 64 draws: 6 standard deviations


def test_the_noise_is_fresh_in_every_session():
    answers = [Session(null_records(), plan(FullBatch(n=N), sigma=1.0)).ask("g", query) for _ in range(2)]
    assert not np.array_equal(*answers)


def test_a_stream_is_keyed_by_256_bits_of_the_operating_system(monkeypatch):
    asked = []
    real = secrets.token_bytes

    def token_bytes(n):
        asked.append(n)
        return real(n)

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    Stream().bits(1)
    assert asked == [32]


def test_two_streams_differ_and_a_seed_repeats():
    assert not np.array_equal(Stream().bits(4), Stream().bits(4))
    assert np.array_equal(Stream(seed=7).bits(4), Stream(seed=7).bits(4))
    assert not np.array_equal(Stream(seed=7).bits(4), Stream(seed=8).bits(4))


def test_a_stream_never_comes_round(monkeypatch):
    """Beyond what one nonce can number, it goes on under the next."""
    monkeypatch.setattr(stream_module, "NONCE_BYTES", 64)
    stream = Stream(seed=3)
    assert len({int(word) for _ in range(100) for word in stream.bits(3)}) == 300


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_is_never_copied_out(leak):
    with pytest.raises(TypeError):
        leak(Stream())


def test_a_stream_does_not_show_its_key():
    assert repr(Stream()) == "Stream(secret)"
    assert repr(Stream(seed=3)) == "Stream(seeded)"


def test_what_a_seed_makes_says_so(tmp_path):
    model = tiny(seed=5)
    model.fit_resample(*data())
    folder = model.release_.save(tmp_path / "release")
    assert str(model.guarantee_) == str(load(folder).guarantee) == "not private: seeded"
    assert not np.isfinite(model.guarantee_.epsilon)
    assert "not private: seeded" in (folder / "README.md").read_text().lower()
    assert "not private: seeded" in (folder / "certificate.json").read_text()
    assert not [p for p in verify(folder) if p.field != "status"]


def test_the_public_seed_is_stored_and_makes_no_noise():
    """Repeats vary the public seed, or keep it, and draw fresh noise either way."""
    runs = [tiny(init_seed=3) for _ in range(2)]
    images = [model.fit_resample(*data())[0] for model in runs]
    assert not np.array_equal(*images)
    assert [model.release_.recipe["init_seed"] for model in runs] == [3, 3]
    assert {model.guarantee_.status for model in runs} == {"private"}
    unasked = tiny()
    unasked.fit_resample(*data())
    assert isinstance(unasked.release_.recipe["init_seed"], int)
    assert "seed" not in unasked.release_.recipe
