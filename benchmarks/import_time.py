"""How long `import workbench` takes in a fresh process, beside NumPy, what compression needs, all names, and the target."""

from __future__ import annotations

import statistics
import subprocess
import sys

TARGET = 0.3   # seconds
PROCESSES = 15


def seconds(statement: str) -> float:
    """The time of one statement in a new interpreter, without the interpreter's own start."""
    program = f"import time; start = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(run.stdout)


def main() -> None:
    """Print the medians; the statements take turns, so that a slow spell of the machine meets both."""
    statements = ["import numpy", "import workbench", "from workbench import compress", "from workbench import *"]
    times: dict[str, list[float]] = {statement: [] for statement in statements}
    for _ in range(1 + PROCESSES):
        for statement in statements:
            times[statement].append(seconds(statement))
    for statement in statements:
        warm = times[statement][1:]   # the first one read the files from disk
        spread = f"{min(warm):.3f} to {max(warm):.3f} s in {PROCESSES} processes"
        print(f"{statement:<30} {statistics.median(warm):.3f} s   ({spread})")
    verdict = "met" if statistics.median(times["import workbench"][1:]) < TARGET else "MISSED"
    print(f"target                         {TARGET:.3f} s   {verdict}")


if __name__ == "__main__":
    main()
