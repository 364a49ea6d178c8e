"""Whether code of the script's own only computes, by a closed vocabulary of Python.

A look runs such code more often than the script says, on other numbers, and in graphs. That is the same for code which
reads, computes and gives; not for code that counts, keeps, asks who calls it, or does what nobody knows. So code is
divided where each of its statements is seen to be of the first kind, with the objects that it would meet. All other
code is called whole, as it is written; layers that it calls are divided.
"""

from __future__ import annotations

from .reads import Reads
from .steps import verdict_of_step
from .verdicts import Verdict, verdict
from .vocabulary import has_own_methods

__all__ = ["Reads", "Verdict", "has_own_methods", "verdict", "verdict_of_step"]
