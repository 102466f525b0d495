"""A process that measures runs: it maps the data once, and answers each line of JSON that asks for a run with another.

The program that starts it is `workers.py`. Its standard output belongs to the answers, and C libraries print there, too:
so the answers get a descriptor of their own, and whatever else is printed goes to standard error, where it is kept apart.
"""

from __future__ import annotations

import json
import os
import sys

from workbench.bounds.measure import measure
from workbench.bounds.parts import mapped
from workbench.bounds.run import Question


def main(file: int) -> None:
    """Answer until there are no more questions, or nobody to ask them."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    data = mapped(file, json.loads(sys.stdin.readline()))
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        run = measure(data, Question.from_dict(json.loads(line)))
        print(json.dumps(run.to_dict()), file=answers, flush=True)
