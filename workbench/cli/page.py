"""`workbench page [FILE]`: one HTML file in which a reader drags an error bound, with nothing installed."""

from __future__ import annotations

import argparse
from pathlib import PurePath

from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import KINDS, add_file, add_trust, open_data, print_result
from workbench.cli.target import add_overwrite, new_file, require_free
from workbench.errors import WorkbenchError


def add(commands: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "page",
        help="write a page that computes in the browser what an error bound does",
        description=(
            "Write one HTML file with the kernels and the data in it: its reader drags an error bound, and sees halos "
            "break, the errors of a field and the size, in any browser and without a server. Without FILE, the data are a "
            "simulated universe and a random field."
        ),
    )
    add_file(parser, text=f"{KINDS}; or an archive", optional=True)
    add_trust(parser)
    parser.add_argument("-o", "--out", default="page.html", help="HTML page to write (default page.html)")
    add_overwrite(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the file or make the examples, and write the page."""
    try:   # the page has the pictures and styles of panels
        from workbench.lab.live.examples import ABOUT, TITLE, example_of, random_field, universe
        from workbench.lab.live.page import page
    except ModuleNotFoundError as error:
        raise WorkbenchError(f"pages need {error.name}: pip install 'lossbench[lab]'") from error
    show_notes(clear_leftovers(require_free(options.out, options.overwrite, options.file)))
    with Progress(options.quiet) as progress:
        if options.file is None:
            progress(None, "simulating a universe, and keeping its clusters at several bounds")
            examples = [universe(), random_field()]
        else:
            progress(None, f"reading {options.file}")
            data = open_data(options)
            progress(None, "preparing the page")
            examples = [example_of(data, PurePath(options.file).name)]
    text = page(examples, TITLE, ABOUT).encode()
    with new_file(options.out, options.overwrite, options.file) as file:
        file.write(text)
    print_result({"page": options.out, "bytes": len(text)}, options.json)
    return 0
