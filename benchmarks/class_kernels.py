"""What the lessons of notebooks/class take of a machine: the memory and the start of one kernel, and of eight at once.

Each lesson is run from top to bottom in a kernel of its own with one thread, as on Binder, without a browser. A kernel has
started when it has answered; `import` is the first cell, which loads the library. Memory is that of the kernel's process at
the end (RSS), and for all kernels together their sum without counting shared pages twice (PSS).

    .venv/bin/python benchmarks/class_kernels.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import psutil
from nbclient import NotebookClient

CLASS = Path(__file__).parents[1] / "notebooks" / "class"
AT_ONCE = 8
MIB = 2**20
REST = "import time\npanel.wait()\ntime.sleep(4)"   # panels compute, and draw their picture for the file, in the background


class Lesson(NamedTuple):
    """A lesson that has run, in a kernel that is still there: seconds, and its process."""

    name: str
    start: float
    imports: float
    run: float
    kernel: psutil.Process

    def __str__(self) -> str:
        memory = self.kernel.memory_info().rss / MIB
        return f"{self.name:12} {self.start:7.1f} {self.imports:7.1f} {self.run:7.1f} {memory:9.0f}"


@contextmanager
def ran(path: Path) -> Iterator[Lesson]:
    """Run a lesson; its kernel ends with the block."""
    notebook: Any = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(REST))
    client: Any = NotebookClient(notebook, timeout=600)
    began = time.perf_counter()
    with client.setup_kernel():
        started = time.perf_counter()
        ends = [started]
        for place, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                client.execute_cell(cell, place)
                ends.append(time.perf_counter())
        kernel = psutil.Process(client.km.provisioner.pid)
        yield Lesson(path.stem, started - began, ends[1] - started, ends[-2] - started, kernel)


def main() -> None:
    """Print a row for each lesson alone, then for eight kernels at once."""
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    lessons = sorted(CLASS.glob("*.ipynb"))
    print(f"{'lesson':12} {'start s':>7} {'import':>7} {'run s':>7} {'RSS MiB':>9}")
    for path in lessons:
        with ran(path) as lesson:
            print(lesson, flush=True)
    print(f"{AT_ONCE} at once, on {os.cpu_count()} cores:")
    chosen = [lessons[number % len(lessons)] for number in range(AT_ONCE)]
    with ExitStack() as kernels, ThreadPoolExecutor(AT_ONCE) as threads:
        all_ran = list(threads.map(lambda path: kernels.enter_context(ran(path)), chosen))
        for lesson in all_ran:
            print(lesson)
        shared = sum(lesson.kernel.memory_full_info().pss for lesson in all_ran)
        print(f"{shared / MIB:.0f} MiB in all (PSS)")


if __name__ == "__main__":
    main()
