"""Known tables: schemas that are whole, and files that are found."""

import pytest

from limbeck.data.tables.catalogue import TABLES, find_table, known_table, load_table
from limbeck.errors import RequestError

SHAPES = {
    "adult": (108, 2), "cervical": (58, 2), "epileptic": (178, 2), "isolet": (617, 2), "intrusion": (122, 5),
    "breast_cancer": (30, 2), "census": (511, 2), "covtype": (54, 7), "credit": (29, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_schemas_are_whole(name):
    table = known_table(name)
    assert (table.schema.shape[0], len(table.schema.classes)) == SHAPES[name]
    assert table.homepage.startswith("https://")
    assert table.schema is known_table(name).schema


def test_breast_cancer_fits_its_schema_and_is_always_there(tmp_path):
    from sklearn.datasets import load_breast_cancer

    whole = load_breast_cancer(as_frame=True).frame
    _, c = TABLES["breast_cancer"].schema.encode(whole)
    assert c.tolist() == whole["target"].tolist()
    sizes = {split: len(load_table("breast_cancer", split, tmp_path)) for split in ("train", "test")}
    assert sizes == TABLES["breast_cancer"].records
    with pytest.raises(RequestError, match="get it from https"):
        load_table("adult", "train", tmp_path)


def test_files_are_found_by_any_of_their_names(tmp_path):
    assert find_table(TABLES["cervical"], tmp_path) is None
    (tmp_path / "cervical_cancer.csv.gz").touch()
    assert find_table(TABLES["cervical"], tmp_path) == tmp_path / "cervical_cancer.csv.gz"
    with pytest.raises(RequestError, match="known are adult"):
        known_table("adults")


def test_lists_of_the_census_are_as_long_as_documented():
    columns = {column.name: column for column in known_table("census").schema.features}
    sizes = {"education": 17, "major industry code": 24, "state of previous residence": 50, "country of birth self": 42}
    sizes |= {
        "detailed household and family stat": 38,
        "detailed industry recode": 52,
        "detailed occupation recode": 47,
    }
    assert {name: len(columns[name].categories) for name in sizes} == sizes
