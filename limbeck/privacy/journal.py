"""Where answers are stored before they are used, so that an interrupted run continues without spending again.

A run has a folder, which may be copied, and an entry in this machine's registry, which says how far the run has
come. Two copies of one folder could each answer the same step with fresh noise and become two releases for the price
of one, so a folder is continued only if it is exactly where the registry says the run is: one copy wins, and the
others are refused.

An answer's way: appended to the folder and synced, then the registry's entry moved on and synced, then returned.
A crash in between leaves the folder one answer ahead, which is adopted; a folder behind, or ahead on another branch,
is refused. The registry's lock is the kernel's, so it ends with the process, `kill -9` included.

The folder is private: it says where the data is, and the answers of a seeded run can be denoised. The registry knows
only counts and digests of noisy answers, and is public.
"""

import fcntl
import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path

import numpy as np

from limbeck.errors import RequestError
from limbeck.files import appending, private_folder, replacing, write_private

RUN, STATE = "run.private.json", "state.private.npz"
SNAPSHOT_BYTES = 256 * 2**20  # answers kept for replay before the state is written whole


def registry() -> Path:
    """The folder of this machine's runs: LIMBECK_HOME, or the user's state folder."""
    home = os.environ.get("LIMBECK_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state" / "limbeck") / "runs"


class Journal:
    """One run's stored answers, under an exclusive lease.

    `request` is what the run was asked to do, as plain public JSON: a run is continued only by the same request.
    Use `Journal.start` or `Journal.resume`, then `close()`, or `finish()` once the release is written.
    """

    def __init__(self, folder: Path, run: str, lock: int):
        self.folder, self.run = folder, run
        self._lock = lock
        self._entry = registry() / f"{run}.json"
        self._answers: dict[tuple[str, int], np.ndarray] = {}
        self._count, self._digest = 0, ""
        self._begun, self._bytes = 0, 0  # at the last snapshot, and since

    # Beginning and end

    @classmethod
    def start(cls, folder: Path, request: dict) -> "Journal":
        if folder.exists():
            raise RequestError(
                f"{folder} holds an unfinished run. Continue it with --resume, or delete the folder to begin "
                "again (what it has spent stays spent)."
            )
        run = secrets.token_hex(16)
        private_folder(folder)
        write_private(folder / RUN, json.dumps({"run": run, "request": request}, indent=1).encode())
        journal = cls(folder, run, _lease(run))
        journal._record()
        return journal

    @classmethod
    def resume(cls, folder: Path, request: dict) -> "Journal":
        try:
            opened = json.loads((folder / RUN).read_text())
            run, before = opened["run"], opened["request"]
        except (OSError, ValueError, KeyError, TypeError):
            raise RequestError(f"there is no unfinished run in {folder}: start one without --resume.") from None
        changed = sorted(k for k in request.keys() | before.keys() if request.get(k) != before.get(k))
        if changed:
            raise RequestError(
                f"the run in {folder} was started with other options: {', '.join(changed)} differ. Resume with "
                "the options it was started with, or start a new run in another folder."
            )
        journal = cls(folder, run, _lease(run))
        try:
            journal._load()
        except BaseException:
            journal.close()
            raise
        return journal

    def close(self) -> None:
        """Give up the lease; the run can be resumed."""
        os.close(self._lock)

    def finish(self) -> None:
        """The release is written: the run is over for every copy of its folder."""
        self._record(finished=True)
        shutil.rmtree(self.folder)
        self.close()

    def remember(self, name: str, value: int | None) -> int:
        """A public seed of this run: the given or a fresh one at its start, the same one ever after."""
        path = self.folder / RUN
        opened = json.loads(path.read_text())
        if name not in opened:
            opened[name] = secrets.randbits(31) if value is None else value
            write_private(path, json.dumps(opened, indent=1).encode())
        if value is not None and value != opened[name]:
            raise RequestError(f"the run in {self.folder} was started with another {name.replace('_', '-')}.")
        return opened[name]

    # Answers

    def replay(self, name: str, step: int) -> np.ndarray | None:
        """The stored answer of this step, if the run has already paid for it."""
        return self._answers.pop((name, step), None)

    def append(self, name: str, step: int, answer: np.ndarray) -> None:
        """Store an answer durably. Only then may it be used."""
        head = json.dumps({"name": name, "step": step, "shape": answer.shape}).encode()
        record = head + b"\n" + np.ascontiguousarray(answer, np.float32).tobytes()
        self._count, self._digest = self._count + 1, _chain(self._digest, record)
        with appending(self._answers_file()) as f:
            f.write(len(record).to_bytes(8, "little") + record)
        self._bytes += len(record)
        self._record()

    def snapshot_due(self) -> bool:
        """Whether the stored answers have grown enough to be replaced by the state that they led to."""
        return self._bytes >= SNAPSHOT_BYTES

    def snapshot(self, state: dict[str, np.ndarray]) -> None:
        """Store the method's state, a function of the answers so far, and drop those answers."""
        with replacing(self.folder / STATE) as f:
            np.savez(f, __count=self._count, __digest=self._digest, **state)  # type: ignore[arg-type]
        self._answers_file().unlink(missing_ok=True)
        self._begun, self._bytes = self._count, 0

    def state(self) -> dict[str, np.ndarray] | None:
        """The last snapshot, if there is one."""
        path = self.folder / STATE
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as z:
            return {k: z[k] for k in z.files if not k.startswith("__")}

    # Bookkeeping

    def _answers_file(self) -> Path:
        """Answers since the last snapshot; named after it, so that a crash between the two leaves no doubt."""
        return self.folder / f"answers-{self._begun}.private.bin"

    def _record(self, finished: bool = False) -> None:
        entry = {"answers": self._count, "digest": self._digest, "finished": finished}
        write_private(self._entry, json.dumps(entry).encode())

    def _load(self) -> None:
        try:
            entry = json.loads(self._entry.read_text())
        except FileNotFoundError:
            raise RequestError(
                f"the run in {self.folder} was not started on this machine (or with another LIMBECK_HOME), so it "
                "cannot be told whether it was continued elsewhere. Resume it where it was started."
            ) from None
        if entry["finished"]:
            raise RequestError(f"the run in {self.folder} has already become a release; this is a copy of it.")
        path = self.folder / STATE
        if path.exists():
            with np.load(path, allow_pickle=False) as z:
                self._begun = self._count = int(z["__count"])
                self._digest = str(z["__digest"])
        reached = {(self._count, self._digest)}
        for record in _records(self._answers_file()):
            head, _, body = record.partition(b"\n")
            at = json.loads(head)
            answer = np.frombuffer(body, np.float32).reshape(at["shape"])
            self._count, self._digest = self._count + 1, _chain(self._digest, record)
            if self._count > entry["answers"] + 1:
                break
            self._answers[at["name"], at["step"]] = answer
            reached.add((self._count, self._digest))
        if (entry["answers"], entry["digest"]) not in reached or self._count > entry["answers"] + 1:
            raise RequestError(
                f"the run in {self.folder} has been continued elsewhere: this copy holds {self._count} answers and "
                f"the run has given {entry['answers']}. Resume the copy that went on; two releases from one run "
                "would cost twice what the certificate says."
            )
        self._bytes = sum(a.nbytes for a in self._answers.values())
        self._record()


def _lease(run: str) -> int:
    """An exclusive lock on the run, held until closed or until the process ends."""
    folder = registry()
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_folder(folder)
    lock = os.open(folder / f"{run}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RequestError("this run is being continued by another process: wait for it, or stop it.") from None
    return lock


def _records(path: Path):
    """The whole records of an answers file; a torn last one, never used, is left out."""
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        if at + 8 + size > len(data):
            break
        yield data[at + 8 : at + 8 + size]
        at += 8 + size
    if at < len(data):
        with path.open("r+b") as f:
            f.truncate(at)


def _chain(digest: str, record: bytes) -> str:
    return hashlib.sha256(digest.encode() + record).hexdigest()
