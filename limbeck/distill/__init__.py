"""Methods that return a small set. One method, one file, named as in the literature."""

from limbeck.distill.decant import Decant
from limbeck.distill.dpkip import DPKIP
from limbeck.distill.kip import KIP
from limbeck.distill.matching import fit_matched
from limbeck.distill.pouring import fit_signal
from limbeck.distill.private_dm import PrivateDM
from limbeck.distill.tuning import Tuned, tune

__all__ = ["DPKIP", "KIP", "Decant", "PrivateDM", "Tuned", "fit_matched", "fit_signal", "tune"]
