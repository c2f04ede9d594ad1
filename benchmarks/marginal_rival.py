"""A marginal-based synthesiser of dpmm, MST or AIM, in an environment of its own: called by `tables.py`, file to file.

    RIVAL/bin/python benchmarks/marginal_rival.py mst 1 1e-5 10000 train.csv domain.json out.csv

dpmm pins versions of NumPy and pandas that Limbeck does not run on:

    python -m venv RIVAL && RIVAL/bin/pip install dpmm==0.1.9

A tenth of epsilon goes to its PrivTree, which cuts numbers into bins, as its defaults have it; bounds and categories
are the declared ones. What it reads off the rows besides (which columns have missing cells or one value only) is not
charged: its epsilon is as its authors state it.
"""

import json
import sys
from pathlib import Path

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline

PIPELINES = {"mst": MSTPipeline, "aim": AIMPipeline}
BINS_SHARE = 0.1


def main() -> None:
    method, epsilon, delta, rows, train, domain, out = sys.argv[1:]
    declared = json.loads(Path(domain).read_text())
    words = [name for name, of in declared.items() if "categories" in of]
    frame = pd.read_csv(train, dtype=dict.fromkeys(words, str), keep_default_na=False, na_values=[""])
    pipeline = PIPELINES[method](
        epsilon=(1 - BINS_SHARE) * float(epsilon),
        proc_epsilon=BINS_SHARE * float(epsilon),
        delta=float(delta),
        n_jobs=1,
    )
    pipeline.fit(frame, domain=declared)
    pipeline.generate(n_records=int(rows)).to_csv(out, index=False)


if __name__ == "__main__":
    main()
