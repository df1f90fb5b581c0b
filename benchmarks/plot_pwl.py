"""Draw the piecewise-linear bounds on the sigmoid as in the paper's figure, and measure their errors.

Writes docs/pwl_sigmoid.png and prints the rows of the table in docs/pwl.md.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from likewise.activations import PwlBounds, by_name, pwl_bounds

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SIGMOID = by_name("sigmoid")
LO, HI = -5.0, 5.0
CELLS = (4, 8, 16, 32, 64)


def max_error(bounds: PwlBounds) -> float:
    z = np.linspace(LO, HI, 400_001)
    f = SIGMOID.value(z)
    below = f - np.interp(z, bounds.breaks, bounds.lower)
    above = np.interp(z, bounds.breaks, bounds.upper) - f
    return float(max(below.max(), above.max()))


def draw(path: Path) -> None:
    figure, axes = plt.subplots(1, len(CELLS), figsize=(17, 3.6), sharey=True, layout="constrained")
    z = np.linspace(LO, HI, 1001)
    for axis, cells in zip(axes, CELLS, strict=True):
        bounds = pwl_bounds(SIGMOID, LO, HI, cells)
        axis.fill_between(bounds.breaks, bounds.lower, bounds.upper, color="tab:blue", alpha=0.2, linewidth=0)
        axis.plot(bounds.breaks, bounds.upper, color="tab:orange", linewidth=1.2, label="upper")
        axis.plot(bounds.breaks, bounds.lower, color="tab:blue", linewidth=1.2, label="lower")
        axis.plot(z, SIGMOID.value(z), color="black", linewidth=0.8, linestyle="--", label="sigmoid")
        axis.plot(bounds.breaks, np.full_like(bounds.breaks, -0.14), "|", color="red", markersize=9, label="breaks")
        axis.set_title(f"M = {cells}, max error {max_error(bounds):.1e}")
        axis.set_xlabel("z")
    axes[0].legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    for cells in CELLS:
        adaptive = max_error(pwl_bounds(SIGMOID, LO, HI, cells, "adaptive"))
        uniform = max_error(pwl_bounds(SIGMOID, LO, HI, cells, "uniform"))
        print(f"| {cells} | {adaptive:.2e} | {uniform:.2e} |")
    draw(Path(__file__).parents[1] / "docs" / "pwl_sigmoid.png")


if __name__ == "__main__":
    main()
