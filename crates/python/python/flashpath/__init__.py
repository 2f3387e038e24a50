"""Flashpath shows, and shortens, the path of every write from file to flash.

>>> import flashpath
>>> result = flashpath.run("uniform:writes=6x", on="page:op=7%/nand:size=1G")
>>> result.write_amplification.total
4.3661994443401335

A *path* is written from top to bottom, as on the command line: stations joined by ``/``, options after ``:``.
:func:`run` runs a workload on one, :func:`sweep` every combination of values, and :func:`trace` reads a trace.
:mod:`flashpath.paths` has all that can stand in a path.
"""

from __future__ import annotations

from . import paths, policies, results
from ._errors import ClusterError, FlashpathError, InputError, RunFailed
from ._goal import GoalFound, TriedValue
from ._native import program as _program
from ._progress import RunProgress, SweepProgress
from ._runs import Sweep, run, sweep
from ._tables import ArrowStream, Table
from .paths import layer, layers
from .policies import cleaner, grouping, victim
from .results import PolicyCost, Result
from .traces import Trace, TraceSummary, trace

__all__ = [
    "ArrowStream",
    "ClusterError",
    "FlashpathError",
    "GoalFound",
    "InputError",
    "PolicyCost",
    "Result",
    "RunFailed",
    "RunProgress",
    "Sweep",
    "SweepProgress",
    "Table",
    "Trace",
    "TraceSummary",
    "TriedValue",
    "cleaner",
    "grouping",
    "layer",
    "layers",
    "paths",
    "policies",
    "program",
    "results",
    "run",
    "sweep",
    "trace",
    "victim",
]

#: The version of the package.
__version__: str = _program().split()[1]


def program() -> str:
    """The version, and the commit of the sources: ``flashpath 0.1.0 (COMMIT)``. Workers of a cluster must have the same."""
    return _program()
