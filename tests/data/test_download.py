"""Downloads, against a server on this machine: the right files arrive whole, and nothing else is left."""

import gzip
import hashlib
import io
import socket
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from limbeck.data import entry, read
from limbeck.data.catalogue import RemoteFile
from limbeck.data.download import get
from limbeck.errors import RequestError
from tests.data.files import cifar_bytes, idx_bytes, random_images

X, Y = random_images(40, (28, 28)), np.arange(40, dtype=np.uint8) % 10


@pytest.fixture
def server(monkeypatch):
    """Serves what is put in `files`, each as (status, content, declared length); `asked` lists requests."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    files, asked = {}, []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, content, length = files.get(self.path, (404, b"", 0))
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    httpd.files, httpd.asked = files, asked
    httpd.url = f"http://127.0.0.1:{httpd.server_port}"
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def publish(server, contents):
    """Put files on the server, and describe them as the catalogue would."""
    for name, content in contents.items():
        server.files[f"/official/{name}"] = server.files[f"/mirror/{name}"] = (200, content, len(content))
    return tuple(
        RemoteFile(f"{server.url}/official/{name}", hashlib.sha256(content).hexdigest(), len(content))
        for name, content in contents.items()
    )


def small_mnist(server):
    contents = {}
    for prefix in ("train", "t10k"):
        contents[f"{prefix}-images-idx3-ubyte.gz"] = gzip.compress(idx_bytes(X))
        contents[f"{prefix}-labels-idx1-ubyte.gz"] = gzip.compress(idx_bytes(Y))
    return replace(entry("mnist"), files=publish(server, contents))


def tar(*members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def small_cifar(server, *members):
    return replace(entry("cifar10"), files=publish(server, {"cifar-10-binary.tar.gz": tar(*members)}))


def test_files_arrive_and_can_be_read(server, tmp_path):
    dataset, seen = small_mnist(server), []
    place = get(dataset, tmp_path / "new" / "data", progress=lambda done, total: seen.append((done, total)))
    assert place == tmp_path / "new" / "data" / "mnist"
    assert [p.name for p in place.parent.iterdir()] == ["mnist"]
    np.testing.assert_array_equal(read(place, dataset.schema, split="test").x.reveal(), X)
    total = sum(file.size for file in dataset.files)
    assert seen[-1] == (total, total)
    assert sorted(seen) == seen


def test_nothing_is_fetched_twice(server, tmp_path):
    dataset = small_mnist(server)
    get(dataset, tmp_path)
    before = len(server.asked)
    assert get(dataset, tmp_path) == tmp_path / "mnist"
    assert len(server.asked) == before


def test_a_mirror(server, tmp_path):
    get(small_mnist(server), tmp_path, base_url=f"{server.url}/mirror/")
    assert all(path.startswith("/mirror/") for path in server.asked)
    with pytest.raises(RequestError, match="http:// or https://"):
        get(small_mnist(server), tmp_path / "b", base_url="file:///etc")


def test_an_archive_is_unpacked(server, tmp_path):
    x, y = random_images(3, (32, 32, 3)), np.array([1, 2, 3])
    place = get(small_cifar(server, ("cifar-10-batches-bin/data_batch_1.bin", cifar_bytes(x, y))), tmp_path)
    np.testing.assert_array_equal(read(place, entry("cifar10").schema).x.reveal(), x)
    assert [p.name for p in place.iterdir()] == ["cifar-10-batches-bin"]


def refused(dataset, folder, message):
    with pytest.raises(RequestError, match=message):
        get(dataset, folder)
    assert list(folder.iterdir()) == []


def test_a_file_without_end_is_not_fetched_to_the_end(server, tmp_path):
    dataset, seen = small_mnist(server), []
    server.files[f"/official/{dataset.files[0].name}"] = (200, b"x" * 2**22, 2**22)
    with pytest.raises(RequestError, match="did not send the file expected"):
        get(dataset, tmp_path, progress=lambda done, total: seen.append(done))
    assert sum(seen) <= dataset.files[0].size


def test_another_file_is_refused(server, tmp_path):
    dataset = small_mnist(server)
    last = f"/official/{dataset.files[-1].name}"
    _, content, length = server.files[last]
    others = {
        "changed": (200, content[:-1] + b"x", length),
        "short": (200, content[:-1], length - 1),
        "cut off": (200, content[:-1], length),
        "longer": (200, content + b"x", length + 1),
        "empty": (200, b"", 0),
    }
    for other in others.values():
        server.files[last] = other
        refused(dataset, tmp_path, r"did not send the file expected|cannot be reached")


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_an_error_of_the_server(server, tmp_path, status):
    dataset = small_mnist(server)
    server.files[f"/official/{dataset.files[1].name}"] = (status, b"sorry", 5)
    refused(dataset, tmp_path, f"labels-idx1-ubyte.gz answers {status}")


def test_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = RemoteFile(f"http://127.0.0.1:{port}/a.gz", "0" * 64, 10)
    refused(replace(entry("mnist"), files=(file,)), tmp_path, "cannot be reached.*--data-dir or LIMBECK_DATA")


@pytest.mark.parametrize("name", ["../escape.bin", "/limbeck-escape.bin"])
def test_an_archive_cannot_write_elsewhere(server, tmp_path, name):
    dataset = small_cifar(server, (name, b"x"))
    data = tmp_path / "a" / "data"
    data.mkdir(parents=True)
    if name.startswith("/"):
        # An absolute name is taken as one below the folder: harmless.
        assert (get(dataset, data) / name[1:]).read_bytes() == b"x"
    else:
        refused(dataset, data, "cannot be unpacked")
    assert not list(tmp_path.glob("**/escape.bin"))
    assert not Path("/limbeck-escape.bin").exists()


def test_a_broken_archive(server, tmp_path):
    contents = {"cifar-10-binary.tar.gz": tar(("a.bin", b"x" * 5000))[:-20]}
    refused(replace(entry("cifar10"), files=publish(server, contents)), tmp_path, "cannot be unpacked")


def test_an_interrupted_download_leaves_nothing(server, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(small_mnist(server), tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_not_touched(server, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "mine.txt").write_text("mine")
    with pytest.raises(RequestError, match="exists and does not hold MNIST"):
        get(small_mnist(server), tmp_path)
    assert [p.name for p in tmp_path.glob("**/*")] == ["mnist", "mine.txt"]
    assert server.asked == []


def test_a_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RequestError, match="cannot be written"):
        get(small_mnist(server), tmp_path / "file")


def test_what_cannot_be_fetched(tmp_path):
    with pytest.raises(RequestError, match="embedded"):
        get("digits", tmp_path)
    with pytest.raises(RequestError, match="known are"):
        get("imagenet", tmp_path)
