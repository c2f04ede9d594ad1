"""What goes out: the folder, its certificate, card and signature. The only code that writes files for others."""

from limbeck.release.checks import Check, Problem
from limbeck.release.folder import Release, load
from limbeck.release.signal import Signal, load_signal
from limbeck.release.verify import Verification, examine, verify

__all__ = [
    "Check",
    "Problem",
    "Release",
    "Signal",
    "Verification",
    "examine",
    "load",
    "load_signal",
    "verify",
]
