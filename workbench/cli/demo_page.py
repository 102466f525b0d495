"""The page that `workbench demo` writes: one self-contained HTML file, with nothing to fetch."""

from __future__ import annotations

import html
from itertools import zip_longest

import numpy as np

from workbench import __version__
from workbench.charts.png import as_data_url, png
from workbench.charts.table import html_table
from workbench.cli.demo_comparison import HEADER, SHARE, Comparison
from workbench.cli.picture import coloured, projected_density
from workbench.clusters import Catalogue, Groups
from workbench.data import Particles

SIDE = 640    # of the picture, in CSS pixels
OUTLINED = 40   # halos

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b2b; --soft: #5c5c70; --line: #d9d9e3; --paper: #fbfbfd; --accent: #b3405f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf4; --soft: #a6a6ba; --line: #34344a; --paper: #14141f; --accent: #f2a05c; }
}
body { margin: 0 auto; max-width: 1120px; padding: 28px 24px 48px; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 26px 0 8px; }
p.lead { color: var(--soft); margin: 0 0 20px; }
main { display: grid; grid-template-columns: minmax(320px, 640px) minmax(300px, 1fr); gap: 32px; align-items: start; }
@media (max-width: 860px) { main { grid-template-columns: 1fr; } }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; border-radius: 6px; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 6px; }
.numbers { display: flex; gap: 24px; flex-wrap: wrap; } .numbers div { min-width: 84px; }
.numbers b { display: block; font-size: 24px; line-height: 1.2; } .numbers span { color: var(--soft); font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: right; padding: 3px 8px; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: 12px 14px; border-radius: 6px;
      overflow-x: auto; font-size: 13px; }
.halo { fill: none; stroke: #9fe8ff; stroke-width: 1.3; } .halo:hover { stroke: #fff; stroke-width: 2.5; }
.grid { stroke: var(--line); } .curve { fill: none; stroke: var(--accent); stroke-width: 2; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
"""

CODE = """import workbench as wb

snapshot = wb.synthetic.cosmic_web(n={n}, seed={seed})
groups = wb.friends_of_friends(snapshot, linking_length=0.2)
print(groups)
archive = wb.compress(snapshot, wb.Absolute({bound:.3g}), order="free", keep=[wb.KeepClusters(0.2)])
print(archive.certificate)"""


def page(particles: Particles, groups: Groups, halos: Catalogue, seconds: float, comparison: Comparison) -> str:
    """The whole page."""
    share = halos.members.sum() / len(particles)
    numbers = [
        (f"{len(particles):,}", "particles"),
        (f"{len(halos):,}", "halos of at least 20"),
        (f"{share:.0%}", "of all particles in halos"),
        (f"{seconds * 1e3:.0f} ms", "to find the halos"),
    ]
    n = round(len(particles) ** (1 / 3))
    code = CODE.format(n=n, seed=particles.metadata.get("seed", 0), bound=comparison.bound)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lossbench demo</title><style>{STYLE}</style></head><body>
<h1>Lossbench</h1>
<p class="lead">A simulated universe of {particles.lengths[0]:g} Mpc/h, and every halo in it: groups of particles linked by
friends of friends at b = 0.2 of the mean spacing ({groups.linking_length:.3g} Mpc/h), exactly.</p>
<main><figure>{_map(particles, halos)}
<figcaption>Matter density through the whole box, logarithmic. Circles: the {min(OUTLINED, len(halos))} largest halos,
at twice their root mean square radius; point at one for its numbers.</figcaption></figure>
<section><div class="numbers">{"".join(f"<div><b>{value}</b><span>{label}</span></div>" for value, label in numbers)}</div>
<h2>The largest halos</h2>{_table(halos)}
<h2>How many halos are larger than a given size</h2>{_mass_function(halos)}</section></main>
{_compressed(comparison)}
<h2>The same in Python</h2><pre>{html.escape(code)}</pre>
<p class="lead">Lossbench {__version__}</p></body></html>
"""


def _map(particles: Particles, halos: Catalogue) -> str:
    """The density with the largest halos outlined."""
    image = as_data_url(png(coloured(projected_density(particles, SIDE, smoothing=2.0))))
    scale = SIDE / particles.lengths[0]
    shapes = [f'<image href="{image}" width="{SIDE}" height="{SIDE}"/>']
    for members, (x, y, _), radius in zip(halos.members[:OUTLINED], halos.centres, halos.radii, strict=False):
        circle = f'cx="{x * scale:.1f}" cy="{SIDE - y * scale:.1f}" r="{max(2 * radius * scale, 3):.1f}"'
        title = f"<title>{members:,} particles, radius {radius:.2f} Mpc/h</title>"
        shapes.append(f'<circle class="halo" {circle} pointer-events="all">{title}</circle>')
    return _drawing(SIDE, SIDE, "Projected matter density with the largest halos circled", shapes)


def _table(halos: Catalogue) -> str:
    rows = []
    largest = zip(halos.members[:8], halos.radii, halos.centres, strict=False)
    for number, (members, radius, (x, y, z)) in enumerate(largest, start=1):
        rows.append((str(number), f"{members:,}", f"{radius:.2f}", f"{x:.1f}, {y:.1f}, {z:.1f}"))
    return html_table(["", "particles", "radius [Mpc/h]", "centre [Mpc/h]"], rows, texts=())


def _compressed(comparison: Comparison) -> str:
    """The cost of each way, its broken halos, and its halos by size."""
    return f"""<h2>Compressed, with and without the halos</h2>
<p class="lead">Every coordinate may differ by {comparison.bound:.3g} Mpc/h, {SHARE:g} of the linking length; without
compression a particle takes 96 bits. A halo is broken when it is split (it lost members) or merged (it lost none, but
gained some); the overhead is the cost of keeping halos, in bits per particle; an error above 1 breaks the bound.</p>
{html_table(HEADER, [way.cells() for way in comparison.ways], texts=())}
<h2>Halos of each size, before and after</h2>{_halo_counts(comparison)}"""


def _halo_counts(comparison: Comparison) -> str:
    """The mass function as a table: bins that double in size, and one column for each way."""
    columns = [comparison.halos, *(way.halos for way in comparison.ways)]
    heads, rows = ["particles", "original", *(way.name for way in comparison.ways)], []
    for number, counts in enumerate(zip_longest(*columns, fillvalue=0)):
        first = comparison.min_members * 2**number
        rows.append((f"{first:,} to {2 * first - 1:,}", *(f"{count:,}" for count in counts)))
    return html_table(heads, rows, texts=())


def _mass_function(halos: Catalogue) -> str:
    """Cumulative number of halos against members, on logarithmic axes."""
    if not len(halos):
        return "<p>No halos: the universe is too small or too young.</p>"
    width, height, left, right, top, bottom = 420, 250, 44, 24, 12, 40
    decades_x = max(2, int(np.ceil(np.log10(halos.members[0] + 1))))
    decades_y = max(1, int(np.ceil(np.log10(len(halos) + 1))))

    def across(members: float) -> float:
        return left + (np.log10(members) - 1) / (decades_x - 1) * (width - left - right)

    def down(count: float) -> float:
        return height - bottom - np.log10(count) / decades_y * (height - bottom - top)

    shapes = []
    for decade in range(1, decades_x + 1):
        x = across(10**decade)
        shapes += [_line(x, top, x, down(1)), _text(x, height - 24, f"{10**decade:,}", "middle")]
    for decade in range(decades_y + 1):
        y = down(10**decade)
        shapes += [_line(left, y, width - right, y), _text(left - 6, y + 4, f"{10**decade:,}", "end")]
    shapes.append(_text((left + width) / 2, height - 6, "particles in the halo", "middle"))
    points = " ".join(f"{across(members):.1f},{down(rank):.1f}" for rank, members in enumerate(halos.members, start=1))
    shapes.append(f'<polyline class="curve" points="{points}"/>')
    return f"<figure>{_drawing(width, height, 'Cumulative halo mass function', shapes)}</figure>"


def _drawing(width: int, height: int, label: str, shapes: list[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(shapes)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
