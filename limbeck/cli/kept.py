"""What `limbeck evaluate --full` keeps: accuracies of networks on a whole training set, which take long to train."""

import hashlib
import json
from functools import cached_property
from pathlib import Path

import numpy as np

from limbeck.cli.run import work_folder
from limbeck.cli.terminal import progress
from limbeck.errors import RequestError
from limbeck.files import private_folder, write_private

Named = tuple[str, np.ndarray, np.ndarray]  # what records are called, encoded images, class indices


class KeptAccuracies:
    """Accuracies in a file of the work folder, found again by the network, its steps and the records.

    Records are known by their names and digests, so that a file that has changed is not taken for what it was. The
    accuracies are private even where the records were declared public: nobody but this command reads them.
    """

    def __init__(self, release: Path, train: Named, test: Named):
        self.path = work_folder(release.resolve()) / "full.private.json"
        self.train, self.test = train, test
        self._kept = self._read()

    def found(self, network: str, classes: int, seeds: int, *, train: bool) -> tuple[float, ...]:
        """What is kept, if anything; with `train`, of at least `seeds` seeds, trained and kept if they were not."""
        if not (train or self._kept):
            return ()
        key = f"{network}, {self._trained}"
        if train and len(self._kept.get(key, ())) < seeds:
            self._kept[key] = list(self._accuracies(network, classes, seeds))
            private_folder(self.path.parent)
            write_private(self.path, json.dumps(self._kept, indent=1).encode())
        return tuple(self._kept.get(key, ()))

    def _accuracies(self, network: str, classes: int, seeds: int) -> tuple[float, ...]:
        from limbeck.evaluate import full_network_accuracies

        (_, x, c), (_, x_test, c_test) = self.train, self.test
        with progress(f"full training set, {network}") as report:
            return full_network_accuracies(network, x, c, classes, x_test, c_test, seeds=seeds, progress=report)

    @cached_property
    def _trained(self) -> str:
        from limbeck.evaluate.scores import full_steps

        steps = full_steps(int((self.train[2] >= 0).sum()))
        return f"{steps} steps on {_known_as(self.train)}, tested on {_known_as(self.test)}"

    def _read(self) -> dict[str, list[float]]:
        try:
            return {key: [float(a) for a in found] for key, found in json.loads(self.path.read_text()).items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, AttributeError):
            raise RequestError(
                f"{self.path} is not a file of accuracies as --full keeps them. Delete it; --full makes it anew."
            ) from None


def _known_as(records: Named) -> str:
    name, x, c = records
    digest = hashlib.blake2b(np.ascontiguousarray(x).data, digest_size=16)
    digest.update(np.ascontiguousarray(c).data)
    return f"{name} ({digest.hexdigest()})"
