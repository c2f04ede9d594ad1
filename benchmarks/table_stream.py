"""Tables larger than memory: generated files of two sizes, each distilled in a process of its own. See `tables.py`."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from machine import peak_memory

ROWS, COLUMNS = (1_000_000, 5_000_000), 50
BLOCK = 100_000
EPSILON, DELTA = 1.0, 1e-7


def schema() -> dict:
    numbers = [{"name": f"x{i}", "kind": "numerical", "low": -5, "high": 5} for i in range(40)]
    words = [{"name": f"c{i}", "kind": "categorical", "categories": list("abcde")} for i in range(9)]
    return {"columns": [*numbers, *words, {"name": "y", "kind": "target", "classes": ["no", "yes"]}]}


def write(path: Path, rows: int) -> None:
    """Normal numbers, five categories, and a class that some of both tell."""
    rng, letters = np.random.default_rng(0), np.array(list("abcde"))
    writer = None
    for start in range(0, rows, BLOCK):
        m = min(BLOCK, rows - start)
        x, c = rng.normal(size=(m, 40)).round(3), rng.integers(0, 5, (m, 9))
        y = x[:, 0] + x[:, 1] * (c[:, 0] == 0) + rng.normal(size=m) > 0
        columns = {f"x{i}": x[:, i] for i in range(40)} | {f"c{i}": letters[c[:, i]] for i in range(9)}
        batch = pa.table(columns | {"y": np.where(y, "yes", "no")})
        writer = writer or pyarrow.csv.CSVWriter(path, batch.schema)
        writer.write_table(batch)
    assert writer is not None
    writer.close()


def distil(path: Path) -> dict:
    from limbeck.data import TableSchema, read_table
    from limbeck.distill import TableDecant
    from limbeck.measure import Records

    declared = TableSchema(**schema())
    begun = time.perf_counter()
    table = read_table(path, declared)
    model = TableDecant(declared, epsilon=EPSILON, delta=DELTA)
    model.fit(Records(declared, table.x, table.y, table.units, cache="disk"))
    assert len(model.release_)
    return {"seconds": time.perf_counter() - begun, "peak_GB": peak_memory(), "guarantee": str(model.guarantee_)}


def stream(results, *, quick: bool) -> None:
    for rows in (20_000, 40_000) if quick else ROWS:
        key = f"stream, {rows} rows x {COLUMNS} columns"
        if key in results.rows:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            write(path, rows)
            size = path.stat().st_size / 1e9
            done = subprocess.run([sys.executable, __file__, str(path)], check=True, capture_output=True, text=True)
        results.update(key, {"rows": rows, "file_GB": size}, **json.loads(done.stdout.splitlines()[-1]))
        print(key, results.rows[key], flush=True)


if __name__ == "__main__":
    print(json.dumps(distil(Path(sys.argv[1]))))
