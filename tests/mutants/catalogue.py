"""The mutants: what published code does, or what a hasty change might, as patches of the code that is run."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dp_accounting import dp_event

from limbeck.data import ImageSchema
from limbeck.distill import DPKIP, dpkip
from limbeck.features import Embedding
from limbeck.measure import ClassSums, Records, Session, SupportGradient, grid, schema_counts, session, store
from limbeck.measure.clipping import clipped_sum, plain_sum
from limbeck.privacy import plan
from limbeck.privacy.plan import Measurement, Poisson
from limbeck.privacy.stream import Stream


@dataclass(frozen=True)
class Mutant:
    """`traced`: the patch is of code that JAX compiles, so that what was compiled before must be forgotten."""

    name: str
    breaks: str
    caught_by: str
    apply: Callable[[pytest.MonkeyPatch], None]
    traced: bool = False


MUTANTS: list[Mutant] = []


def _node(caught_by: str) -> str:
    return caught_by if caught_by.startswith("tests/") else f"tests/guarantee/{caught_by}"


def mutant(breaks: str, caught_by: str, traced: bool = False):
    def register(apply: Callable[[pytest.MonkeyPatch], None]):
        MUTANTS.append(Mutant(apply.__name__.replace("_", " "), breaks, _node(caught_by), apply, traced))
        return apply

    return register


BOUNDED = "test_01_bounded_contribution.py::test_a_poisoned_record_moves_the_sum_by_at_most_C"
ISOLATED = "test_02_isolation.py::test_a_contribution_does_not_depend_on_the_other_records[fc-ntk-normal]"
SCALE = "test_06_noise_law.py::test_a_session_adds_normal_noise_of_sigma_C[fc-ntk-normal]"
NO_TRACE = "test_10_initialisation_carries_no_data.py::test_the_output_is_the_same_bits_for_every_dataset"

# The twelve of property 14


@mutant("one record moves a sum without bound", f"{BOUNDED}[fc-ntk-normal-random]", traced=True)
def no_clip(patch):
    patch.setattr(session, "clipped_sum", lambda g, clip: plain_sum(g))


@mutant("what a record adds depends on who else is there", ISOLATED, traced=True)
def batch_level_clip(patch):
    patch.setattr(
        session, "clipped_sum", lambda g, clip: clipped_sum(jax.tree.map(lambda v: v[None], plain_sum(g)), clip)
    )


def quieter(patch, factor: Callable[[Measurement], float]):
    real = Session._noisy_floats

    def noisy(self, measurement, *rest):
        less = measurement.model_copy(update={"sigma": measurement.sigma * factor(measurement)})
        return real(self, less, *rest)

    patch.setattr(Session, "_noisy_floats", noisy)


@mutant("half the noise that was accounted", SCALE)
def half_sigma(patch):
    quieter(patch, lambda m: 0.5)


@mutant("noise scaled for a mean and added to a sum", SCALE)
def noise_divided_by_B(patch):
    quieter(patch, lambda m: 1 / m.sampling.expected)


@mutant(
    "two answers differ noise-free",
    "test_07_fresh_and_secret.py::test_the_noise_is_fresh_at_every_answer[fc-ntk-normal]",
)
def noise_once_per_epoch(patch):
    real, kept = Stream.normal, {}

    def normal(self, shape):
        calls, noise = kept.get((id(self), shape), (0, None))
        noise = real(self, shape) if calls % 10 == 0 else noise
        kept[id(self), shape] = calls + 1, noise
        return noise

    patch.setattr(Stream, "normal", normal)


@mutant(
    "amplification by sampling is claimed and not there",
    "test_04_sampler_is_accountant.py::test_every_unit_joins_with_probability_q_independently_of_the_step",
)
def shuffled_batches(patch):
    decks: dict[Stream, list[int]] = {}

    def draw(self, stream):
        size = round(self.expected)
        deck = decks.setdefault(stream, [])
        if len(deck) < size:
            deck[:] = np.argsort(stream.bits(self.n))
        batch = np.sort([deck.pop() for _ in range(size)])
        return np.pad(batch, (0, self.cap - size), constant_values=-1)

    patch.setattr(Poisson, "draw", draw)


def start_from(patch, support: Callable):
    """Give the initial support what the records hold: `support(x_s, y_s, inputs, targets)`."""
    real_fit, real_support = DPKIP.fit, dpkip.random_support

    def fit(self, records, **options):
        records.prepare(self.resolved_features())
        held = records.batch(np.arange(records.n))
        patch.setattr(dpkip, "random_support", lambda *a: support(*real_support(*a), *held))
        return real_fit(self, records, **options)

    patch.setattr(DPKIP, "fit", fit)


@mutant("real images are in the output", f"{NO_TRACE}[fc-ntk-normal-full]")
def private_initialisation(patch):
    start_from(patch, lambda x_s, y_s, x, y: (jnp.asarray(x[: len(x_s), 0]).reshape(x_s.shape), y_s))


@mutant("the classes' exact frequencies are in the output", f"{NO_TRACE}[fc-ntk-normal-full]")
def exact_labels(patch):
    start_from(patch, lambda x_s, y_s, x, y: (x_s, y_s + jnp.asarray(np.nan_to_num(y).mean((0, 1)), y_s.dtype)))


@mutant("one record moves the normalisation of all", ISOLATED)
def private_mean_and_deviation(patch):
    real = ImageSchema.encode

    def encode(self, X, y):
        x, c = real(self, X, y)
        return ((x - x.mean()) / (x.std() + 1e-6)).astype(np.float32), c

    patch.setattr(ImageSchema, "encode", encode)


@mutant("one record turns the output into NaN", f"{BOUNDED}[fc-ntk-normal-random]", traced=True)
def nan_passes_through(patch):
    def leaky(g, clip):
        return jax.tree.map(lambda bounded, raw: bounded + 0 * raw, clipped_sum(g, clip), plain_sum(g))

    patch.setattr(session, "clipped_sum", leaky)


@mutant("one step is charged and many are run", "test_08_calibration.py::test_steps_and_measurements_compose")
def forgotten_composition(patch):
    patch.setattr(Measurement, "event", property(lambda m: m.sampling.event(m.sigma, m.noise)))
    patch.setattr(Measurement, "rough_event", Measurement.event)


@mutant(
    "an answer of exact zeros says that nobody was drawn",
    "test_05_empty_padded_overfull.py::test_noise_is_added_to_a_batch_of_any_size[fc-ntk-normal]",
)
def empty_batch_skipped(patch):
    real = Session._noisy_floats

    def noisy(self, measurement, query, chunks):
        answer = real(self, measurement, query, chunks)
        return answer if (chunks >= 0).any() else np.zeros_like(answer)

    patch.setattr(Session, "_noisy_floats", noisy)


# And a few more


@mutant("cut batches are accounted as whole", "test_04_sampler_is_accountant.py::test_the_event_knows_of_the_cap")
def truncation_not_in_the_event(patch):
    patch.setattr(
        Poisson,
        "event",
        lambda self, sigma, noise: dp_event.PoissonSampledDpEvent(self.q, dp_event.GaussianDpEvent(sigma)),
    )


@mutant(
    "noise that anybody can repeat is called private",
    "test_07_fresh_and_secret.py::test_what_a_seed_makes_says_so",
)
def seeded_stream_claimed_private(patch):
    patch.setattr(Stream, "seeded", property(lambda self: False, lambda self, value: None), raising=False)


@mutant(
    "more answers than were paid for",
    "test_11_everything_is_charged_or_public.py::test_no_more_answers_are_given_than_the_plan_holds",
)
def an_answer_that_is_not_counted(patch):
    real = Session.ask

    def ask(self, name, query):
        before = dict(self._asked)
        answer = real(self, name, query)
        self._asked = before
        return answer

    patch.setattr(Session, "ask", ask)


@mutant("rounding carries a contribution above C", f"{BOUNDED}[fc-ntk-discrete-random]", traced=True)
def grid_without_the_norm(patch):
    patch.setattr(grid, "rounded", lambda g, clip: jnp.round(grid.C_STEPS * g / clip).astype(jnp.int32))
    patch.setattr(grid, "exact_sum", lambda k: k.astype(np.int64).sum(axis=0))


@mutant("half the noise that was accounted, on the grid", SCALE.replace("normal]", "discrete]"))
def half_sigma_on_the_grid(patch):
    real = grid.noisy
    patch.setattr(grid, "noisy", lambda total, sigma, stream: real(total, sigma / 2, stream))


@mutant(
    "an answer depends on how many were drawn",
    "test_05_empty_padded_overfull.py::test_sums_are_divided_by_a_public_constant_and_not_by_the_batch",
)
def mean_over_the_drawn_batch(patch):
    real = Session._noisy_floats

    def noisy(self, measurement, query, chunks):
        drawn = max(1, (chunks >= 0).sum())
        return real(self, measurement, query, chunks) * measurement.sampling.expected / drawn

    patch.setattr(Session, "_noisy_floats", noisy)


@mutant("a floor on delta: no noise beyond 5.4 sigma", "test_06_noise_law.py::test_tails_reach_beyond_eight_sigma")
def short_tails(patch):
    real = Stream.normal
    patch.setattr(Stream, "normal", lambda self, shape: np.clip(real(self, shape), -5.4, 5.4))


@mutant(
    "n counts usable records, so it is private", "test_09_unit_and_relation.py::test_a_null_record_keeps_its_place_in_n"
)
def null_records_dropped(patch):
    real = Records.__init__

    def init(self, schema, X, y, units=None):
        _, c = schema.encode(X, y)
        real(self, schema, np.asarray(X)[c >= 0], np.asarray(y)[c >= 0], units)

    patch.setattr(Records, "__init__", init)


@mutant(
    "a person counts as often as they have rows",
    "test_01_bounded_contribution.py::test_all_rows_of_a_person_together_move_the_sum_by_at_most_C[normal]",
    traced=True,
)
def rows_of_a_person_clipped_apart(patch):
    real = SupportGradient.contributions

    def contributions(self, inputs, y):
        return real(self, inputs.reshape(-1, 1, inputs.shape[-1]), y.reshape(-1, 1, y.shape[-1]))

    patch.setattr(SupportGradient, "contributions", contributions)


@mutant(
    "twice the sensitivity at the price of once",
    "test_09_unit_and_relation.py::test_replacing_a_record_moves_the_sum_by_at_most_2C_and_is_priced_so",
)
def replacing_priced_as_zeroing_out(patch):
    for name in ("epsilon_of", "epsilon_rdp"):
        real = getattr(plan, name)
        patch.setattr(plan, name, lambda event, delta, relation, real=real: real(event, delta, "zero-out"))


@mutant(
    "private features can be read by others, and after the run",
    "test_11_everything_is_charged_or_public.py::test_features_on_disk_have_no_name_and_are_their_owners_alone",
)
def feature_cache_that_stays(patch):
    patch.setattr(store, "nameless", lambda folder: (folder / "features.bin").open("w+b"))


@mutant(
    "what a record adds depends on how many others are of its class",
    "tests/measure/test_class_sums.py::test_a_record_adds_a_vector_of_norm_one_to_its_own_class",
    traced=True,
)
def class_sums_over_exact_counts(patch):
    real = ClassSums.contributions

    def contributions(self, inputs, y):
        counts = jnp.maximum(jnp.nansum(y + 1 / y.shape[-1], axis=(0, 1)), 1)
        return real(self, inputs, (y + 1 / y.shape[-1]) / counts - 1 / y.shape[-1])

    patch.setattr(ClassSums, "contributions", contributions)


@mutant(
    "one record moves what the others' embeddings are centred by",
    "tests/measure/test_class_sums.py::test_a_record_adds_a_vector_of_norm_one_to_its_own_class",
    traced=True,
)
def embeddings_centred_by_the_batch(patch):
    real = Embedding.raw
    patch.setattr(Embedding, "raw", lambda self, x: real(self, x) - jnp.mean(real(self, x), axis=0) + self.mean)


@mutant(
    "a value that one person alone holds is named, half of the time",
    "tests/measure/test_schema_counts.py::test_a_value_that_one_unit_alone_holds_is_not_named",
)
def values_named_without_a_threshold(patch):
    patch.setattr(schema_counts.Purchase, "threshold", lambda self, plan: 0.0)


@mutant(
    "whether a value passes shows how many hold it",
    "tests/measure/test_schema_counts.py::test_values_at_the_threshold_pass_half_of_the_time",
)
def values_counted_without_noise(patch):
    real = schema_counts.named
    patch.setattr(schema_counts, "named", lambda votes, threshold, deviation, stream: real(votes, threshold, 0, stream))


@mutant(
    "a person counts as often as they have rows",
    "tests/measure/test_schema_counts.py::test_all_rows_of_a_person_together_move_the_votes_by_at_most_the_clip"
    "[True-3]",
)
def a_vote_for_every_row(patch):
    real = Records.cells

    def cells(self, names):
        for batch, shares in real(self, names):
            yield batch, (shares > 0).astype(float)

    patch.setattr(Records, "cells", cells)


@mutant(
    "a resumed run measures its class counts again, unpaid",
    "tests/distill/test_dpkip_tables.py::test_counts_are_not_measured_again_by_a_run_that_is_resumed",
)
def counts_measured_again(patch):
    patch.setattr(Session, "_replayed", lambda self, name, step: self._journal and self._journal.replay(name, step))
