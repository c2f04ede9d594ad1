"""From records to a release, and every way in which the request can be wrong."""

import csv
import json
import stat
import subprocess
import sys

import numpy as np
import pytest

from limbeck.release import load
from tests.cli.conftest import QUICK


def test_distill_verify_evaluate_predict(limbeck, small, distilled):
    release = load(distilled)
    assert release.guarantee.status == "private"
    assert 0.99 <= release.guarantee.epsilon <= 1
    assert len(release) == 2
    assert not (small / "out.work").exists()

    checked = limbeck("verify", distilled)
    assert checked.code == 0
    assert "consistent, not authenticated" in checked.out

    scored = limbeck("evaluate", distilled, "--test", small / "small.npz", "--networks", "none", "--json")
    assert scored.code == 0, scored.text
    assert 0 <= json.loads(scored.out)["rows"]["release"]["krr"] <= 1
    private = small / "out.work" / "scores.private.json"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert limbeck("verify", distilled).code == 0  # scores stay out of the release

    predicted = limbeck("predict", distilled, small / "small.npz", "--out", small / "p.csv")
    assert predicted.code == 0, predicted.text
    with (small / "p.csv").open() as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 120
    assert {row["prediction"] for row in rows} <= {"0", "1"}
    assert sum(float(rows[0][f"p({c})"]) for c in (0, 1)) == pytest.approx(1, abs=1e-3)


def test_evaluate_with_a_reference_and_public_data(limbeck, small, distilled):
    data = small / "small.npz"
    scored = limbeck("evaluate", distilled, "--test", data, "--reference", data, "--public", "--networks", "none")
    assert scored.code == 0, scored.text
    for row in ("release", "random real subset", "full training set"):
        assert row in scored.out
    assert (small / "out.work" / "scores.json").exists()


def test_evaluate_has_a_column_for_each_network(limbeck, small, distilled):
    arguments = ("evaluate", distilled, "--test", small / "small.npz", "--networks", "mlp, lenet", "--seeds", 2)
    scored = limbeck(*arguments, "--train-on", "soft")
    assert scored.code == 0, scored.text
    assert "MLP accuracy" in scored.out
    assert "LeNet accuracy" in scored.out
    assert "ConvNet" not in scored.out
    kept = json.loads((small / "out.work" / "scores.private.json").read_text())["rows"]["release"]
    assert {name: len(found) for name, found in kept["networks"].items()} == {"mlp": 2, "lenet": 2}
    assert kept["network_mean"]["mlp"] == pytest.approx(np.mean(kept["networks"]["mlp"]))


def test_networks_are_shown_variations_unless_told_otherwise(limbeck, small, distilled):
    def row(*options):
        base = ("evaluate", distilled, "--test", small / "small.npz", "--networks", "mlp", "--seeds", 1, "--json")
        scored = limbeck(*base, *options)
        assert scored.code == 0, scored.text
        return json.loads(scored.out)["rows"]["release"]

    usual = row()
    assert usual["train_on"] == "varied"
    assert usual["networks"]["mlp"][0] > 0.8
    assert row("--train-on", "soft")["train_on"] == "soft"


def test_networks_on_the_full_set_are_trained_once_and_shown_again(limbeck, small, distilled):
    data, path = small / "small.npz", small / "out.work" / "full.private.json"

    def full_row(*options):
        base = ("evaluate", distilled, "--test", data, "--reference", data, "--networks", "mlp", "--seeds", 1, "--json")
        scored = limbeck(*base, "--train-on", "soft", *options)
        assert scored.code == 0, scored.text
        return json.loads(scored.out)["rows"]["full training set"]["networks"]

    assert full_row() == {}
    assert not path.exists()
    trained = full_row("--full")
    assert trained["mlp"][0] > 0.8
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (key,) = json.loads(path.read_text())
    path.write_text(json.dumps({key: [0.125]}))  # a figure that no training would give
    assert full_row() == full_row("--full") == {"mlp": [0.125]}
    with np.load(data) as arrays:
        np.savez(data, x=arrays["x"][::-1], y=arrays["y"][::-1])
    assert full_row() == {}  # another file of the same name
    path.write_text("[]")
    broken = limbeck("evaluate", distilled, "--test", data, "--reference", data, "--networks", "none")
    assert broken.code == 2
    assert "full.private.json" in broken.err.replace("\n", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--networks", "vgg"), "'vgg'; some of convnet,mlp,lenet,resnet, or none"),
        (("--networks", "mlp,"), "'mlp,'"),
        (("--networks", ""), "--networks is ''"),
        (("--train-on", "firm"), "--train-on is 'firm'; varied, soft or hard"),
        (("--full",), "--reference DATA"),
        (("--full", "--networks", "none", "--reference", "small.npz"), "--networks is 'none'"),
    ],
)
def test_a_wrong_evaluation_is_explained_and_leaves_nothing(limbeck, small, distilled, options, said):
    done = limbeck("evaluate", distilled, "--test", small / "small.npz", *options)
    assert done.code == 2, done.text
    assert said in done.err.replace("\n", " ")
    assert "Traceback" not in done.text
    assert not (small / "out.work").exists()


def test_predict_a_folder_of_pictures(limbeck, small, distilled):
    from PIL import Image

    (small / "pictures").mkdir()
    for i, value in enumerate((60, 200)):
        Image.fromarray(np.full((12, 12), value, np.uint8)).save(small / "pictures" / f"{i}.png")
    (small / "pictures" / "broken.png").write_bytes(b"no picture")
    done = limbeck("predict", distilled, small / "pictures", "--out", small / "p.csv")
    assert done.code == 0, done.text
    with (small / "p.csv").open() as f:
        rows = {row[0]: row[1] for row in csv.reader(f)}
    assert rows["broken.png"] == ""
    assert rows["0.png"] in ("0", "1")


def test_a_broken_release_fails_with_exit_code_1(limbeck, distilled):
    path = distilled / "certificate.json"
    raw = json.loads(path.read_text())
    path.write_text(json.dumps(raw | {"epsilon": 0.1}))
    checked = limbeck("verify", distilled)
    assert checked.code == 1
    assert "epsilon" in checked.out
    found = json.loads(limbeck("verify", distilled, "--json").out)
    assert found["consistent"] is False
    assert {"epsilon"} <= {p["field"] for p in found["problems"]}


def test_a_seeded_run_repeats_and_is_marked(limbeck, small):
    for name in ("a", "b"):
        done = limbeck(
            "distill", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--out", small / name,
            "--seed", 3, "--init-seed", 4,
        )  # fmt: skip
        assert done.code == 0, done.text
        assert "not private: seeded" in done.text
    assert np.array_equal(load(small / "a").x, load(small / "b").x)
    assert load(small / "a").guarantee.status == "seeded"
    assert "not private: seeded" in limbeck("verify", small / "a").out.lower()


def test_kip_says_that_it_promises_nothing(limbeck, small):
    done = limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", "--method", "kip", "--features", "fc-ntk",
        "--per-class", 1, "--epochs", 3, "--batch", 40, "--learn-labels", "--out", small / "kip",
    )  # fmt: skip
    assert done.code == 0, done.text
    assert "no privacy guarantee" in done.text
    assert "no privacy guarantee" in (small / "kip" / "README.md").read_text().lower()
    assert limbeck("verify", small / "kip").code == 0


@pytest.mark.parametrize("init", [None, "random", "real"])
def test_dm_says_that_it_promises_nothing(limbeck, small, init):
    done = limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", "--method", "dm", "--features", "fc-ntk",
        "--per-class", 2, "--steps", 3, "--batch", "full", "--out", small / "dm", *(("--init", init) if init else ()),
    )  # fmt: skip
    assert done.code == 0, done.text
    assert "dm gives no privacy guarantee" in done.err
    assert "no privacy guarantee" in done.out
    assert ("real records" in done.err) == (init == "real")
    card = (small / "dm" / "README.md").read_text()
    assert "**No privacy guarantee.**" in card
    assert ("real records" in card) == (init == "real")
    assert stat.S_IMODE((small / "dm").stat().st_mode) == 0o700
    checked = limbeck("verify", small / "dm")
    assert checked.code == 0
    assert "no privacy guarantee" in checked.out.lower()
    release = load(small / "dm")
    assert (release.recipe["method"], release.recipe["steps"], release.recipe["batch"]) == ("DM", 3, 120)
    scored = limbeck("evaluate", small / "dm", "--test", small / "small.npz", "--networks", "none", "--json")
    assert scored.code == 0, scored.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--method", "dm", "--seed", 1), "dm has no noise"),
        (("--method", "dm", "--clip-norm", 1), "dm has no noise"),
        (("--method", "dm", "--dataset", "mine"), "dm spends no budget"),
        (("--method", "dm", "--resume"), "dm spends nothing"),
        (("--method", "kip", "--resume"), "kip spends nothing"),
        (("--method", "dm", "--init", "magic"), "--init is 'magic'"),
        (("--method", "dm", "--steps", 0), "--steps"),
        (("--method", "dm", "--batch", 0), "batch"),
        (("--method", "dm", "--per-class", 0), "images a class"),
        (("--method", "dm", "--per-class", 10**7), "GiB"),
        (("--method", "dm", "--epochs", 2), "--epochs belongs to kip and dpkip"),
        (("--method", "dm", "--for", "networks"), "is what private-dm does"),
        (("--method", "dm", "--learn-labels"), "dm keeps the labels fixed"),
        (("--method", "kip", "--init", "real"), "--init belongs to dm"),
        (("--method", "kip", "--steps", 3), "--steps belongs to decant and dm"),
        (("--init", "real"), "--init belongs to dm; the method is private-dm"),
    ],
)
def test_a_wrong_request_of_a_method_without_a_guarantee_is_explained(limbeck, small, options, said):
    """And auto never chooses one, whatever is given."""
    before = set(small.iterdir())
    done = limbeck("distill", small / "small.npz", "--schema", small / "schema.json", *options, "--out", small / "out")
    assert done.code == 2, done.text
    assert said in done.err.replace("\n", " ")
    assert set(small.iterdir()) == before


@pytest.mark.parametrize("method", ["kip", "dm"])
def test_there_is_no_plan_of_a_method_without_a_guarantee(limbeck, method):
    done = limbeck("plan", "digits", "--method", method)
    assert done.code == 2
    assert f"{method} measures nothing under a plan" in done.err.replace("\n", " ")


def test_plan_reads_no_data(limbeck, small):
    (small / "small.npz").write_bytes(b"nothing that could be read")
    done = limbeck("plan", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--n", 120, "--json")
    assert done.code == 0, done.text
    facts = json.loads(done.out)
    assert facts["plan"]["measurements"][0]["steps"] == 6
    assert 0.99 <= facts["epsilon"] <= 1
    assert facts["memory_bytes"] > 0
    assert facts["seconds"] > 0


def test_plan_of_a_known_dataset(limbeck):
    done = limbeck("plan", "digits", "--features", "fc-ntk", "--per-class", 1)
    assert done.code == 0, done.text
    assert "1437" in done.out
    assert "sigma" in done.out


def test_check_lists_bad_records_only_when_strict(limbeck, small):
    x = np.zeros((4, 6, 6))
    x[1, 2, 2] = np.nan
    np.savez(small / "bad.npz", x=x, y=[0, 1, 98765, 1])
    arguments = ("check", small / "bad.npz", "--schema", small / "schema.json")
    assert limbeck(*arguments).code == 0
    strict = limbeck(*arguments, "--strict")
    assert strict.code == 1
    assert "record 1: non-finite value" in strict.out
    assert "record 2: label outside the declared classes" in strict.out
    assert "98765" not in strict.text


WRONG = [
    (("--epsilon", "0"), "epsilon"),
    (("--epsilon", "-1"), "epsilon"),
    (("--epsilon", "nan"), "epsilon"),
    (("--delta", "0"), "delta"),
    (("--delta", "1"), "delta"),
    (("--per-class", "0"), "images a class"),
    (("--per-class", "10000000"), "GiB"),
    (("--batch", "many"), "--batch"),
    (("--batch", "0"), "batch"),
    (("--epochs", "0"), "--epochs"),
    (("--clip-norm", "-1"), "--clip-norm"),
    (("--features", "magic"), "magic"),
    (("--method", "magic"), "magic"),
    (("--optimiser", "magic"), "magic"),
    (("--relation", "magic"), "magic"),
    (("--preset", "magic"), "magic"),
    (("--learn-labels",), "labels fixed"),
    (("--resume",), "no unfinished run"),
    (("--schema", "nowhere.json"), "nowhere.json"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_a_wrong_request_is_explained_and_leaves_nothing(limbeck, small, options, said):
    before = set(small.iterdir())
    base = ["--features", "fc-ntk", "--epochs", "2", "--batch", "full", "--per-class", "1"]
    done = limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", *base, *options, "--out", small / "out"
    )
    assert done.code == 2, done.text
    assert said in done.err.replace("\n", " ")
    assert "Traceback" not in done.text
    assert set(small.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.npz", None, "missing.npz"),
        ("truncated.npz", b"PK\x03\x04 cut short", "truncated"),
        ("text.npz", b"hello", "text.npz"),
        ("train-images-idx3-ubyte", b"\x00\x00\x08\x03\x00\x00\x00\x05", "idx3"),
        ("notes.txt", b"hello", "notes.txt"),
    ],
)
def test_a_wrong_file_is_explained_and_leaves_nothing(limbeck, small, name, content, said):
    if content is not None:
        (small / name).write_bytes(content)
    before = set(small.iterdir())
    done = limbeck("distill", small / name, "--schema", small / "schema.json", "--out", small / "out")
    assert done.code == 2, done.text
    assert said in done.err.replace("\n", "")
    assert set(small.iterdir()) == before


def test_another_shape_is_explained(limbeck, small):
    np.savez(small / "wide.npz", x=np.zeros((5, 6, 9)), y=np.zeros(5))
    done = limbeck("distill", small / "wide.npz", "--schema", small / "schema.json", "--out", small / "out")
    assert done.code == 2
    assert "(n, 6, 6, 1)" in done.err.replace("\n", " ")


def test_an_existing_folder_is_refused_before_anything_is_read(limbeck, small, distilled):
    before = (distilled / "certificate.json").read_bytes()
    arguments = ("distill", small / "nowhere.npz", "--schema", small / "schema.json", *QUICK, "--out", distilled)
    done = limbeck(*arguments)
    assert done.code == 2
    assert "--force" in done.err
    assert (distilled / "certificate.json").read_bytes() == before


def test_a_file_of_ones_own_needs_a_schema(limbeck, small):
    done = limbeck("distill", small / "small.npz", "--out", small / "out")
    assert done.code == 2
    assert "--schema" in done.err


def test_a_large_delta_is_warned_of(limbeck, small):
    done = limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--delta", "0.05",
        "--out", small / "out",
    )  # fmt: skip
    assert done.code == 0
    assert "1/n" in done.err


def test_data_list_and_an_absent_dataset(limbeck, tmp_path):
    assert "fashion_mnist" in limbeck("data", "list").out
    done = limbeck("distill", "mnist", "--data-dir", tmp_path, "--out", tmp_path / "out")
    assert done.code == 2
    assert "limbeck data get mnist" in done.err.replace("\n", " ")


def test_importing_limbeck_is_light():
    code = "import sys, limbeck; assert not {'jax', 'sklearn', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
