"""Methods that return a small set. One method, one file, named as in the literature."""

from limbeck.distill.dpkip import DPKIP
from limbeck.distill.kip import KIP
from limbeck.distill.tuning import Tuned, tune

__all__ = ["DPKIP", "KIP", "Tuned", "tune"]
