"""Plans for the ledger's tests: quick to price, with noise as given."""

from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson


def full(sigma: float, *, steps: int = 1, delta: float = 1e-5, n: int = 100, **terms) -> Plan:
    measurement = Measurement(name="g", sampling=FullBatch(n=n), steps=steps, clip=1.0, sigma=sigma)
    return Plan(measurements=(measurement,), delta=delta, **terms)


def sampled(sigma: float, *, steps: int = 20, delta: float = 1e-5, n: int = 500, batch: int = 50, **terms) -> Plan:
    sampling = Poisson.of(n, batch, steps, delta)
    measurement = Measurement(name="g", sampling=sampling, steps=steps, clip=1.0, sigma=sigma)
    return Plan(measurements=(measurement,), delta=delta, **terms)
