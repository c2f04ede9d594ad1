"""A custodian's look at single rows."""

from limbeck.data import read_table
from limbeck.data.tables.check import UNREADABLE, bad_rows
from tests.data.tables.schemas import NAMES, SCHEMA


def test_every_bad_row_is_listed_with_its_columns_and_no_value(tmp_path):
    lines = [
        NAMES,
        ["44", "1", "Ham", "low", "yes", "1", "", "no"],
        ["200", "1", "Ham", "low", "yes", "1", "", "secret"],
        ["44"],
        ["secret", "", "Ham", "low", "yes", "9", "", "yes"],
    ]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, lines)) + "\n")
    found = bad_rows(read_table(tmp_path / "t.csv", SCHEMA), SCHEMA)
    assert [i for i, _ in found] == [1, 1, 2, 3, 3, 3]
    assert found[2] == (2, UNREADABLE)
    assert {reason.split(":")[0] for i, reason in found if i == 3} == {"age", "amount", "number"}
    assert not any("secret" in reason for _, reason in found)
