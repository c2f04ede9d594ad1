"""Methods that return a small set. One method, one file, named as in the literature."""

from limbeck.distill.decant import Decant
from limbeck.distill.dm import DM
from limbeck.distill.dpkip import DPKIP
from limbeck.distill.kip import KIP
from limbeck.distill.matching import fit_matched
from limbeck.distill.pouring import fit_signal
from limbeck.distill.private_dm import PrivateDM
from limbeck.distill.table_decant import TableDecant
from limbeck.distill.table_fit import fit_table
from limbeck.distill.tuning import Tuned, tune

__all__ = [
    "DM",
    "DPKIP",
    "KIP",
    "Decant",
    "PrivateDM",
    "TableDecant",
    "Tuned",
    "fit_matched",
    "fit_signal",
    "fit_table",
    "tune",
]
