"""Mechanisms as inert data: dp-accounting's events, those that it lacks, and both as plain JSON."""

import attr
from dp_accounting import dp_event
from scipy.stats import binom

from limbeck.errors import RequestError


@attr.frozen
class TruncatedSubsampledZCDpEvent(dp_event.DpEvent):
    """A rho-zCDP mechanism on a Poisson sample of the units, of which at most `truncated_batch_size` are kept."""

    dataset_size: int
    sampling_probability: float
    truncated_batch_size: int
    rho: float


@attr.frozen
class RareDpEvent(dp_event.DpEvent):
    """Shows something of a unit with at most this probability, and otherwise nothing: (0, probability)-DP."""

    probability: float


LEAVES: dict[str, tuple[type, tuple[str, ...]]] = {
    "Gaussian": (dp_event.GaussianDpEvent, ("noise_multiplier",)),
    "ZeroConcentrated": (dp_event.ZCDpEvent, ("rho",)),
    "TruncatedSubsampledGaussian": (
        dp_event.TruncatedSubsampledGaussianDpEvent,
        ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier"),
    ),
    "TruncatedSubsampledZeroConcentrated": (
        TruncatedSubsampledZCDpEvent,
        ("dataset_size", "sampling_probability", "truncated_batch_size", "rho"),
    ),
    "Rare": (RareDpEvent, ("probability",)),
}


def event_tree(event: dp_event.DpEvent) -> dict:
    """The event as plain JSON data, for the certificate and the ledger."""
    match event:
        case dp_event.ComposedDpEvent():
            return {"event": "Composed", "events": [event_tree(e) for e in event.events]}
        case dp_event.SelfComposedDpEvent():
            return {"event": "SelfComposed", "count": event.count, "of": event_tree(event.event)}
    for name, (kind, fields) in LEAVES.items():
        if type(event) is kind:
            return {"event": name} | {field: getattr(event, field) for field in fields}
    raise TypeError(f"no plan makes a {type(event).__name__}")


def event_of(tree: dict) -> dp_event.DpEvent:
    """The event that `event_tree` wrote."""
    try:
        match tree["event"]:
            case "Composed":
                return dp_event.ComposedDpEvent(tuple(event_of(e) for e in tree["events"]))
            case "SelfComposed":
                return dp_event.SelfComposedDpEvent(event_of(tree["of"]), tree["count"])
        kind, fields = LEAVES[tree["event"]]
        return kind(**{field: tree[field] for field in fields})
    except (KeyError, TypeError):
        raise RequestError("this is not the event of a plan: a field is missing or its kind is not known.") from None


def leaves(event: dp_event.DpEvent, count: int = 1) -> list[tuple[dp_event.DpEvent, int]]:
    """The mechanisms that an event is composed of, and how often each is run."""
    match event:
        case dp_event.ComposedDpEvent():
            return [leaf for e in event.events for leaf in leaves(e, count)]
        case dp_event.SelfComposedDpEvent():
            return leaves(event.event, count * event.count)
    return [(event, count)]


def rare_of(event: dp_event.DpEvent) -> float:
    """A bound on the probability that any of the event's rare parts shows something."""
    return float(sum(count * e.probability for e, count in leaves(event) if isinstance(e, RareDpEvent)))


def common_of(event: dp_event.DpEvent) -> dp_event.DpEvent:
    """The event without its rare parts."""
    kept = [(e, count) for e, count in leaves(event) if not isinstance(e, RareDpEvent)]
    return dp_event.ComposedDpEvent(tuple(dp_event.SelfComposedDpEvent(e, count) for e, count in kept))


def truncation_of(event: dp_event.DpEvent) -> float:
    """A bound on the probability that any of the event's batches is cut at its cap, or that a rare part shows."""
    return rare_of(event) + float(
        sum(
            count * binom.sf(e.truncated_batch_size, e.dataset_size, e.sampling_probability)
            for e, count in leaves(event)
            if hasattr(e, "truncated_batch_size")
        )
    )
