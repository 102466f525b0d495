"""A worker process: it maps the data once, reads requests for runs as lines of JSON, and answers each with a line.

`workers.py` starts it. Standard output carries the answers, but C libraries print there, too. So the answers get their own
descriptor, and all other output is redirected to standard error.
"""

from __future__ import annotations

import json
import os
import sys

from workbench.bounds.measure import measure
from workbench.bounds.parts import mapped
from workbench.bounds.run import Question


def main(file: int) -> None:
    """Answer questions until standard input ends or the parent is gone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    data = mapped(file, json.loads(sys.stdin.readline()))
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        run = measure(data, Question.from_dict(json.loads(line)))
        print(json.dumps(run.to_dict()), file=answers, flush=True)
