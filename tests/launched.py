"""Shared by tests of processes started by mpirun."""

import os
import pathlib

ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launcher(mpirun, nodes, *options):
    return [mpirun, "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", *options, "-n", str(nodes)]


def processes_of(mpirun):
    """The ids of the processes that it started, by rank."""
    ranks = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"\nPPid:\t{mpirun}\n" in (entry / "status").read_text():
                values = dict(line.split("=", 1) for line in (entry / "environ").read_text().split("\0") if "=" in line)
                ranks[int(values["OMPI_COMM_WORLD_RANK"])] = int(entry.name)
        except (OSError, KeyError):
            continue
    return ranks
