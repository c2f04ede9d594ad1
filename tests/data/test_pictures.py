"""Folders of pictures by class, and Hugging Face folders: a bad picture is one null record."""

import io
import json
import socket
import sys
import zlib

import datasets
import numpy as np
import pytest
from PIL import Image

from limbeck.data import ImageSchema, read
from limbeck.errors import RequestError
from tests.data.files import random_images

COLOUR = ImageSchema(shape=(6, 5, 3), classes=("cat", "dog"), low=0, high=255)
GREY = ImageSchema(shape=(6, 5), classes=("cat", "dog"), low=0, high=255)
PIXELS = random_images(5, (6, 5, 3))


def write_folder(root, pixels=PIXELS):
    """cat/0.png, cat/2.png, cat/4.png, dog/1.png, dog/3.png"""
    for i, picture in enumerate(pixels):
        folder = root / ("cat", "dog")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{i}.png")
    return root


ORDER = [0, 2, 4, 1, 3]
CLASSES = [0, 0, 0, 1, 1]


def test_a_folder_by_class_in_the_order_of_the_names(tmp_path):
    images = read(write_folder(tmp_path), COLOUR)
    assert images.names.reveal() == ("cat/0.png", "cat/2.png", "cat/4.png", "dog/1.png", "dog/3.png")
    x, c = COLOUR.encode(images.x.reveal(), images.y.reveal())
    expected, _ = COLOUR.encode(PIXELS[ORDER], ["cat"] * 5)
    np.testing.assert_array_equal(x, expected)
    assert c.tolist() == CLASSES


def test_other_files_are_not_records(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "cat" / "notes.txt").write_text("x")
    (tmp_path / "cat" / ".hidden.png").write_text("x")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "a.png").write_text("x")
    (tmp_path / "top.png").write_text("x")
    (tmp_path / "empty").mkdir()
    assert len(read(tmp_path, COLOUR)) == 5


def test_splits_in_a_folder(tmp_path):
    write_folder(tmp_path / "train")
    with pytest.raises(RequestError, match="no test split"):
        read(tmp_path, COLOUR, split="test")
    write_folder(tmp_path / "test", PIXELS[:2])
    assert len(read(tmp_path, COLOUR)) == 5
    assert len(read(tmp_path, COLOUR, split="test")) == 2
    assert len(read(tmp_path / "train", COLOUR, split="test")) == 5


def test_a_class_may_be_called_train(tmp_path):
    for name in ("train", "car"):
        (tmp_path / name).mkdir()
        Image.fromarray(PIXELS[0]).save(tmp_path / name / "a.png")
    schema = ImageSchema(shape=(6, 5, 3), classes=("train", "car"), low=0, high=255)
    assert read(tmp_path, schema).y.reveal() == ["car", "train"]


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


BAD = {
    "empty": b"",
    "text": b"not a picture",
    "truncated": png(PIXELS[1])[:60],
    "cut": png(random_images(1, (6, 5, 3), seed=9)[0])[:-25],
    "another size": png(random_images(1, (7, 5, 3))[0]),
    "a tiff": b"II*\0" + b"\xff" * 40,
    "a bomb": None,
}


def bomb():
    """A header that promises a picture of 10 ** 10 pixels."""
    content = bytearray(png(PIXELS[0]))
    content[16:24] = (100_000).to_bytes(4, "big") * 2
    content[29:33] = zlib.crc32(bytes(content[12:29])).to_bytes(4, "big")
    return bytes(content)


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_picture_is_null_and_the_others_are_the_same_bits(tmp_path, bad, capfd, caplog):
    root = write_folder(tmp_path)
    images = read(root, COLOUR)
    clean = COLOUR.encode(images.x.reveal(), images.y.reveal())
    (root / "dog" / "1.png").write_bytes(bomb() if BAD[bad] is None else BAD[bad])
    images = read(root, COLOUR)
    x, c = COLOUR.encode(images.x.reveal(), images.y.reveal())
    assert c.tolist() == [0, 0, 0, -1, 1]
    assert not x[3].any()
    others = [0, 1, 2, 4]
    assert x[others].tobytes() == clean[0][others].tobytes()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_an_extra_class_is_null_and_an_absent_one_changes_nothing(tmp_path):
    root = write_folder(tmp_path)
    (root / "bird").mkdir()
    (root / "cat" / "0.png").rename(root / "bird" / "0.png")
    images = read(root, COLOUR)
    assert COLOUR.encode(images.x.reveal(), images.y.reveal())[1].tolist() == [-1, 0, 0, 1, 1]
    more = ImageSchema(shape=(6, 5, 3), classes=("cat", "dog", "emu"), low=0, high=255)
    assert more.encode(images.x.reveal(), images.y.reveal())[1].tolist() == [-1, 0, 0, 1, 1]


def test_resize_on_request(tmp_path):
    (tmp_path / "cat").mkdir()
    Image.new("RGB", (50, 60), (10, 20, 30)).save(tmp_path / "cat" / "a.jpg", quality=95)
    Image.new("RGB", (5, 6), (10, 20, 30)).save(tmp_path / "cat" / "b.png")
    plain = read(tmp_path, COLOUR)
    assert COLOUR.encode(plain.x.reveal(), plain.y.reveal())[1].tolist() == [-1, 0]
    resized = read(tmp_path, COLOUR, resize=True)
    x, c = COLOUR.encode(resized.x.reveal(), resized.y.reveal())
    assert c.tolist() == [0, 0]
    np.testing.assert_allclose(COLOUR.decode(x[0]), COLOUR.decode(x[1]), atol=3)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
@pytest.mark.parametrize("schema", [GREY, COLOUR], ids=["grey", "colour"])
def test_colours_are_those_declared(tmp_path, mode, schema):
    (tmp_path / "cat").mkdir()
    name = "a.jpg" if mode == "CMYK" else "a.png"
    Image.new("RGB", (5, 6), (255, 255, 255)).convert(mode).save(tmp_path / "cat" / name)
    images = read(tmp_path, schema)
    x, c = schema.encode(images.x.reveal(), images.y.reveal())
    assert c.tolist() == [0]
    assert x.min() == 1


def test_a_picture_at_which_pillow_warns_is_read(tmp_path):
    (tmp_path / "cat").mkdir()
    picture = Image.fromarray(PIXELS[0]).quantize(16)
    picture.save(tmp_path / "cat" / "a.png", transparency=bytes(range(16)))
    with pytest.warns(UserWarning, match="Transparency"), Image.open(tmp_path / "cat" / "a.png") as again:
        again.convert("RGB")
    images = read(tmp_path, COLOUR)
    assert COLOUR.encode(images.x.reveal(), images.y.reveal())[1].tolist() == [0]


def test_sixteen_bits_are_kept(tmp_path):
    deep = ImageSchema(shape=(6, 5), classes=("cat", "dog"), low=0, high=65535)
    pixels = np.random.default_rng(0).integers(0, 65536, (6, 5), dtype=np.uint16)
    (tmp_path / "cat").mkdir()
    Image.fromarray(pixels).save(tmp_path / "cat" / "a.png")
    images = read(tmp_path, deep)
    np.testing.assert_array_equal(images.x.reveal()[0][:, :, 0], pixels)
    assert read(tmp_path, deep, resize=True).x.reveal()[0].shape == (6, 5, 1)


def test_units_cannot_come_from_a_folder_of_pictures(tmp_path):
    people = ImageSchema(shape=(6, 5, 3), classes=("cat", "dog"), low=0, high=255, unit="person")
    with pytest.raises(RequestError, match="whom the records belong to"):
        read(write_folder(tmp_path), people)


def test_more_channels_than_a_picture_can_have(tmp_path):
    with pytest.raises(RequestError, match="1 to 4 channels"):
        read(write_folder(tmp_path), ImageSchema(shape=(6, 5, 7), classes=("cat", "dog"), low=0, high=255))


def hugging_face(label=None):
    """A Hugging Face dataset of the five pictures."""
    cells = [{"bytes": png(p), "path": None} for p in PIXELS]
    features = {"img": datasets.Image(), "label": label or datasets.ClassLabel(names=["cat", "dog"])}
    table = {"img": cells, "label": [0, 1, 0, 1, 0]}
    return datasets.Dataset.from_dict(table, features=datasets.Features(features))


def test_a_hugging_face_dataset(tmp_path):
    hugging_face().save_to_disk(tmp_path / "one")
    both = datasets.DatasetDict({"train": hugging_face(), "test": hugging_face().select([0, 1])})
    both.save_to_disk(tmp_path / "both")
    expected, _ = COLOUR.encode(PIXELS, ["cat"] * 5)
    for path, split, n in (
        ("one", "train", 5),
        ("one", "test", 5),
        ("both", "train", 5),
        ("both", "test", 2),
    ):
        images = read(tmp_path / path, COLOUR, split=split)
        x, c = COLOUR.encode(images.x.reveal(), images.y.reveal())
        np.testing.assert_array_equal(x, expected[:n])
        assert c.tolist() == [0, 1, 0, 1, 0][:n]


def test_hugging_face_labels_by_number(tmp_path):
    hugging_face().save_to_disk(tmp_path / "named")
    hugging_face(label=datasets.Value("int64")).save_to_disk(tmp_path / "plain")
    numbers = ImageSchema(shape=(6, 5, 3), classes=(1, 0), low=0, high=255)
    for name in ("named", "plain"):
        images = read(tmp_path / name, numbers)
        assert numbers.encode(images.x.reveal(), images.y.reveal())[1].tolist() == [1, 0, 1, 0, 1]


def test_a_bad_hugging_face_picture_is_null_and_no_address_is_followed(tmp_path, monkeypatch):
    (tmp_path / "4.png").write_bytes(png(PIXELS[4]))
    cells = [{"bytes": png(p), "path": None} for p in PIXELS]
    cells[1] = {"bytes": b"not a picture", "path": None}
    cells[3] = {"bytes": None, "path": "https://127.0.0.1:1/picture.png"}
    cells[4] = {"bytes": None, "path": str(tmp_path / "4.png")}
    cat = ["cat"] * 5
    datasets.Dataset.from_dict({"img": cells, "label": cat}).save_to_disk(tmp_path / "data")
    # The library follows addresses when it saves an image column: the column is declared afterwards.
    about = tmp_path / "data" / "dataset_info.json"
    info = json.loads(about.read_text())
    info["features"]["img"] = {"_type": "Image"}
    about.write_text(json.dumps(info))
    monkeypatch.setattr(socket, "socket", lambda *a, **k: pytest.fail("the network was used"))
    images = read(tmp_path / "data", COLOUR)
    x, c = COLOUR.encode(images.x.reveal(), images.y.reveal())
    assert c.tolist() == [0, -1, 0, -1, 0]
    expected, _ = COLOUR.encode(PIXELS, ["cat"] * 5)
    assert x[[0, 2, 4]].tobytes() == expected[[0, 2, 4]].tobytes()


def test_hugging_face_arrays_and_units(tmp_path):
    table = {"image": PIXELS.tolist(), "label": ["cat", "dog", None, "emu", "cat"], "unit": list("aabbc")}
    datasets.Dataset.from_dict(table).save_to_disk(tmp_path / "data")
    people = ImageSchema(shape=(6, 5, 3), classes=("cat", "dog"), low=0, high=255, unit="person", rows_per_unit=2)
    images = read(tmp_path / "data", people)
    x, c = people.encode(images.x.reveal(), images.y.reveal())
    assert c.tolist() == [0, 1, -1, -1, 0]
    assert images.units.reveal().tolist() == list("aabbc")
    np.testing.assert_array_equal(x[4], people.encode(PIXELS[4:], ["cat"])[0][0])


def test_a_hugging_face_folder_that_cannot_be_read(tmp_path, monkeypatch):
    hugging_face().remove_columns("label").save_to_disk(tmp_path / "unlabelled")
    with pytest.raises(RequestError, match="columns img; no label column"):
        read(tmp_path / "unlabelled", COLOUR)
    datasets.DatasetDict({"train": hugging_face()}).save_to_disk(tmp_path / "train only")
    with pytest.raises(RequestError, match="no test split, only train"):
        read(tmp_path / "train only", COLOUR, split="test")
    hugging_face().save_to_disk(tmp_path / "cut")
    arrow = next((tmp_path / "cut").glob("*.arrow"))
    arrow.write_bytes(arrow.read_bytes()[:100])
    with pytest.raises(RequestError, match="cannot be read as a Hugging Face"):
        read(tmp_path / "cut", COLOUR)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(RequestError, match=r"install limbeck\[huggingface\]"):
        read(tmp_path / "cut", COLOUR)
