"""What goes out: the folder, its certificate and card. The only code that writes files for others."""

from limbeck.release.folder import Release, load
from limbeck.release.verify import Problem, verify

__all__ = ["Problem", "Release", "load", "verify"]
