"""What goes out: the folder, its certificate, card and signature. The only code that writes files for others."""

from limbeck.release.checks import Check, Problem
from limbeck.release.folder import Release, load
from limbeck.release.verify import Verification, examine, verify

__all__ = ["Check", "Problem", "Release", "Verification", "examine", "load", "verify"]
