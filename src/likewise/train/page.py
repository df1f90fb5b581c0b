"""A comparison as text and as one HTML page with the front as a picture."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from importlib.util import find_spec

from likewise.errors import MissingExtra
from likewise.train.compare import Row
from likewise.train.examples import Examples
from likewise.train.settings import Settings

NOTE = (
    "Deltas are proven bounds [lower, upper] at this eps, over everyone who can exist. Calibrated means after Platt "
    "scaling on the training people, so that shrinking the scores buys nothing. Rows marked * do not beat both trivial "
    "baselines, or did not reach their target, and are not claimed."
)
STYLE = (
    "body{font-family:sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}"
    "td,th{padding:.3rem .7rem;border-bottom:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}"
)


def cells(rows: Sequence[Row]) -> list[list[str]]:
    """Return the table, its head first."""
    measures = list(rows[0].test) if rows else []
    groups = list(rows[0].groups) if rows else []
    head = ["method", *(f"test {name.replace('_', ' ')}" for name in measures), "delta", "delta, calibrated"]
    head += [f"{short} {name}" for name in groups for short in ("EOD", "DPD")]
    table = [[*head, "seconds"]]
    for row in rows:
        line = [row.name + ("" if row.claimed else " *"), *(f"{row.test[name]:.4f}" for name in measures)]
        line += [f"[{low:.5f}, {high:.5f}]" for low, high in (row.raw, row.calibrated)]
        for name in groups:
            gaps = row.groups[name]
            line += [f"{gaps['equalised_odds']:.3f}", f"{gaps['demographic_parity']:.3f}"]
        table.append([*line, f"{row.seconds:.1f}"])
    return table


def text_table(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    table = cells(rows)
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in table
    )


def page(examples: Examples, settings: Settings, rows: Sequence[Row], points: Sequence[Row]) -> str:
    """Return the HTML page."""
    title = f"{examples.name or 'Training methods'} compared: hidden {list(settings.hidden)}, eps = {settings.eps:g}"
    picture = base64.b64encode(front_picture(examples, rows, points)).decode()
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(NOTE)}</p>", "<h2>Methods</h2>", _html(rows)]
    parts += ["<h2>The front</h2>", f'<img alt="the front" src="data:image/png;base64,{picture}">', _html(points)]
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>{"".join(parts)}</html>\n'  # noqa: E501


def _html(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head, *lines = cells(rows)
    marked = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><tr>{marked}</tr>{body}</table>"


def front_picture(examples: Examples, rows: Sequence[Row], points: Sequence[Row]) -> bytes:
    """Return the front as a png: goodness against the proven upper bound of the calibrated network."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib (for the picture of a comparison)", "train")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    claimed = [row for row in points if row.claimed]
    axes.plot([r.calibrated[1] for r in claimed], [_height(r) for r in claimed], "o-", label="certified, by target")
    for row in rows:
        axes.plot(max(row.calibrated[1], 1e-4), _height(row), "s", label=row.name)
    axes.set_xscale("log")
    axes.set_xlabel("proven upper bound on delta, calibrated (0 is drawn at 1e-4)")
    axes.set_ylabel("test balanced accuracy" if examples.is_classes else "test mean squared error")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    return written.getvalue()


def _height(row: Row) -> float:
    return row.test.get("balanced_accuracy", row.test.get("mse", 0.0))
