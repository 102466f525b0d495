"""Prints what searches and archives of 10⁹ to 10¹² particles will take: the table of docs/scaling.md.

Nothing is measured here: these are plans (`wb.distributed.plan`), in an instant.
"""

from __future__ import annotations

from typing import Any

from workbench.distributed import Plan, Rates, plan
from workbench.subdomains.plan import as_duration, as_size

RUNS: dict[str, dict[str, Any]] = {
    "search": {}, "archive in order": {"order": "keep"}, "archive in free order": {"order": "free"},
    "clusters kept": {"order": "free", "keep": True},
}
SIZES = {10**9: 64, 10**10: 256, 10**12: 4096}   # particles, and workers of one thread
MEMORY = "64GB"
FILE_SYSTEM = 1e11   # bytes per second of scratch files for all workers together, as a large file system gives
COLUMNS = (
    "particles", "run", "workers", "subdomains", "tasks", "files opened", "through the scheduler", "scratch files",
    "memory of a worker", "of the client", "time of workers", "of tasks", "of traffic", "of files",
)


def row(name: str, planned: Plan) -> list[str]:
    """One line of the table."""
    power = str(len(str(planned.particles)) - 1).translate(str.maketrans("0129", "⁰¹²⁹"))
    return [
        f"10{power}", name, f"{planned.workers:,}", f"{planned.parts:,}" if planned.ghosts else "-", f"{planned.tasks:,}",
        f"{planned.files:.1e}",
        *map(as_size, (planned.traffic, planned.scratch, planned.worker_memory, planned.client_memory)),
        *map(as_duration, planned.limits.values()),
    ]


def table() -> str:
    """The table in Markdown."""
    lines = [list(COLUMNS), ["---"] * len(COLUMNS)]
    for particles, workers in SIZES.items():
        rates = Rates(scratch=min(Rates().scratch, FILE_SYSTEM / workers))
        for name, run in RUNS.items():
            lines.append(row(name, plan(particles, workers=workers, memory=MEMORY, rates=rates, **run)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table())
