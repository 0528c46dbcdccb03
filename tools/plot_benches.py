"""Draws the results of `cargo bench -- --json FILE` and puts them into benches/README.md as a table.

    python tools/plot_benches.py [FILE] [--svg FILE] [--readme FILE]

Without arguments: from benches/results.jsonl to benches/results.svg and benches/README.md. Needs Python, nothing else.
"""

import argparse
import json
import math
import pathlib
import re
from xml.sax.saxutils import escape

BENCHES = pathlib.Path(__file__).resolve().parent.parent / "benches"

# The drawing, in pixels.
LEFT, PLOT, COLUMN, ROW, TOP = 240, 470, 62, 21, 118
WIDTH = LEFT + PLOT + 2 * COLUMN + 34
INK, SOFT, RULE, BAND, ONE, MANY = "#1f2328", "#656d76", "#d8dee4", "#e6eaef", "#0550ae", "#d4720b"
FONT = "font-family=\"'Helvetica Neue', Helvetica, Arial, sans-serif\""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", default=BENCHES / "results.jsonl", type=pathlib.Path)
    parser.add_argument("--svg", default=BENCHES / "results.svg", type=pathlib.Path)
    parser.add_argument("--readme", default=BENCHES / "README.md", type=pathlib.Path)
    args = parser.parse_args()

    rows = [json.loads(line) for line in args.results.read_text().splitlines()]
    gathers = [row for row in rows if "loop" in row["ns"]]
    loads = [row for row in rows if "load" in row["ns"]]
    if gathers:
        args.svg.write_text(drawing(gathers))
    made = "\n\n".join(table for table in (gather_table(gathers), load_table(loads)) if table)
    text, places = re.subn(
        r"(<!-- results[^>]*-->\n).*?(<!-- /results -->)",
        lambda match: f"{match[1]}{made}\n{match[2]}",
        args.readme.read_text(),
        flags=re.DOTALL,
    )
    if places != 1:
        raise SystemExit(f"{args.readme} has no place for the results")
    args.readme.write_text(text)


def threads(gathers):
    return gathers[0]["threads"]


def duration(ns):
    unit, size = next((u, s) for u, s in (("ms", 1e6), ("µs", 1e3), ("ns", 1)) if ns >= s or s == 1)
    return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:.0f} {unit}"


def ratio(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def gather_table(gathers):
    if not gathers:
        return ""
    lines = [
        f"| cell | plain loop | memcpy | onnxref, 1 thread | {threads(gathers)} threads | `Model::run` |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in gathers:
        ns = row["ns"]
        ratios = [ns[name] / ns["loop"] for name in ("memcpy", "onnxref", "onnxref_threads", "onnxref_run")]
        lines.append(f"| {row['cell']} | {duration(ns['loop'])} | {' | '.join(map(ratio, ratios))} |")
    return "\n".join(lines)


def load_table(loads):
    if not loads:
        return ""
    lines = [
        "| cell | decode | read the file | `Model::load` | with `mmap` |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in loads:
        ns = row["ns"]
        ratios = [ns[name] / ns["decode"] for name in ("read", "load", "load_mmap")]
        lines.append(f"| {row['cell']} | {duration(ns['decode'])} | {' | '.join(f'{r:.2g}' for r in ratios)} |")
    return "\n".join(lines)


def drawing(gathers):
    """An SVG: for each cell a band from memcpy to the plain loop, and where onnxref is."""
    names = ("memcpy", "onnxref", "onnxref_threads")
    ratios = [row["ns"][name] / row["ns"]["loop"] for row in gathers for name in names]
    low, high = math.log10(max(min(ratios), 0.01) / 1.25), math.log10(max(*ratios, 2) * 1.25)

    def x(value):
        return LEFT + PLOT * min(max((math.log10(value) - low) / (high - low), 0), 1)

    groups = {}
    for row in gathers:
        group, _, cell = row["cell"].partition("/")
        groups.setdefault(group, []).append((cell, row["ns"]))
    bottom = TOP + ROW * (len(gathers) + len(groups)) + 8 * (len(groups) - 1) + 6
    parts = []

    def text(at, y, content, anchor="start", size=13, color=INK, weight="normal"):
        style = f'text-anchor="{anchor}" font-size="{size}" fill="{color}" font-weight="{weight}"'
        parts.append(f'<text x="{at:.1f}" y="{y:.1f}" {style}>{escape(content)}</text>')

    def line(x1, y1, x2, y2, color, width=1.0, more=""):
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        parts.append(f'<line {ends} stroke="{color}" stroke-width="{width}" {more}/>')

    def one(at, y):
        parts.append(f'<circle cx="{at:.1f}" cy="{y:.1f}" r="5" fill="{ONE}"/>')

    def many(at, y):
        parts.append(f'<circle cx="{at:.1f}" cy="{y:.1f}" r="4.2" fill="none" stroke="{MANY}" stroke-width="2.2"/>')

    def band(start, end, y):
        start, end = sorted((start, end))
        parts.append(f'<rect x="{start:.1f}" y="{y - 5:.1f}" width="{end - start:.1f}" height="10" fill="{BAND}"/>')

    # Title and legend.
    many_threads = f"{threads(gathers)} threads"
    text(20, 34, "Time of onnxref beside the plain loop", size=19, weight="bold")
    subtitle = "The plain loop checks every index and writes to memory that is kept. Left of it is faster."
    text(20, 56, subtitle, color=SOFT)
    one(26, 81)
    text(38, 85.5, "onnxref, 1 thread")
    many(186, 81)
    text(198, 85.5, f"onnxref, {many_threads}")
    text(500, 85.5, "memcpy of the output", "end")
    band(508, 556, 81)
    line(508, 74, 508, 88, SOFT, 2)
    line(556, 74, 556, 88, INK, 1.2)
    text(564, 85.5, "plain loop")

    # Grid and axis.
    ticks = [m * 10.0**e for e in range(-2, 3) for m in (1, 2, 5) if low <= math.log10(m * 10.0**e) <= high]
    for tick in ticks:
        if tick != 1:
            line(x(tick), TOP, x(tick), bottom, RULE, 1 if f"{tick:g}"[-1] in "10" else 0.5)
        for y in (TOP - 6, bottom + 17):
            text(x(tick), y, f"{tick:g}", "middle", 11, INK if tick == 1 else SOFT, "bold" if tick == 1 else "normal")
    text(LEFT + PLOT / 2, bottom + 38, "time / time of the plain loop (logarithmic)", "middle", 12, SOFT)
    columns = [LEFT + PLOT + COLUMN, LEFT + PLOT + 2 * COLUMN + 14]
    for at, label, color in zip(columns, ("1 thread", many_threads), (ONE, MANY)):
        text(at, TOP - 6, label, "end", 11, color, "bold")

    # Cells. Bands first, so that the line of the loop and the dots are over them.
    y, dots = TOP + 4, []
    for group, cells in groups.items():
        y += ROW
        text(20, y - 5, group, weight="bold")
        for cell, ns in cells:
            middle = y + ROW / 2
            text(34, middle + 4.5, cell)
            copy, alone, shared = (ns[name] / ns["loop"] for name in names)
            band(x(copy), x(1), middle)
            line(x(copy), middle - 7, x(copy), middle + 7, SOFT, 2)
            for at, value in zip(columns, (alone, shared)):
                text(at, middle + 4.5, ratio(value), "end", 12)
            dots.append((middle, alone, shared))
            y += ROW
        y += 8
    line(x(1), TOP, x(1), bottom, INK, 1.2)
    for middle, alone, shared in dots:
        one(x(alone), middle)
        many(x(shared), middle)

    height = bottom + 54
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    title = "<title>Time of onnxref beside the plain loop, by cell</title>"
    background = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([f"{head} {FONT}>", title, background, *parts, "</svg>", ""])


if __name__ == "__main__":
    main()
