"""Files larger than memory: what reading them takes at most does not grow with their rows."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

COLUMNS = 20
READ = """
import sys
from limbeck.data import TableSchema, read_table

numbers = [{"name": f"c{i}", "kind": "numerical", "low": 0, "high": 1} for i in range(int(sys.argv[1]))]
schema = TableSchema(columns=[*numbers, {"name": "y", "kind": "target", "classes": [0, 1]}])
for path in sys.argv[2:]:
    rows = sum(len(c) for _, c in read_table(path, schema).x.reveal().encoded(1024))
status = open("/proc/self/status").read()  # getrusage counts what the parent held when it forked
print(rows, status.split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of a process's memory")
def test_the_peak_of_memory_does_not_grow_with_the_rows(tmp_path):
    """The process's own peak, Arrow's buffers and mapped pages included, over all kinds of file."""
    peaks = {}
    for n in (15_000, 150_000):
        rng = np.random.default_rng(0)
        table = pa.table({f"c{i}": rng.random(n) for i in range(COLUMNS)} | {"y": rng.integers(0, 2, n)})
        paths = [tmp_path / f"{n}.{kind}" for kind in ("csv", "parquet", "feather")]
        pa.csv.write_csv(table, paths[0])
        pq.write_table(table, paths[1], use_dictionary=False, data_page_size=2**14)  # one row group
        pa.feather.write_feather(table, paths[2], compression="uncompressed", chunksize=4096)
        command = [sys.executable, "-c", READ, str(COLUMNS), *map(str, paths)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows, peaks[n] = map(int, done.stdout.split())
        assert rows == n
    kib = (150_000 - 15_000) * (COLUMNS + 1) * 8 // 1024  # what the rows would take
    assert peaks[150_000] - peaks[15_000] < kib / 2
