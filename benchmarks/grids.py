"""The tables of cells that can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from instances import WIDTHS, known


@dataclass(frozen=True, slots=True)
class Grid:
    """Questions by name, the engines to run each with, and the seconds for each."""

    names: Callable[[], Iterable[str]]
    engines: tuple[str, ...]
    seconds: float
    gap: float = 1e-5
    threads: int = 1


def _adult() -> list[str]:
    return [
        f"paper/adult_{widths}|{metric}|{eps}"
        for widths in WIDTHS
        for metric in ("linf", "mahalanobis")
        for eps in (0.01, 0.05, 0.1, 0.2, 0.25)
    ]


def _versus() -> list[str]:
    return [
        f"mild/{data}_{widths}|box|{eps}"
        for data in ("adult", "german")
        for widths in ("8", "16", "24", "8x8")
        for eps in (0.05, 0.2)
    ]


def _settings() -> list[str]:
    return [
        f"{recipe}/{data}_16x16|{metric}|0.2"
        for metric in ("embedding", "linf", "mahalanobis")
        for data in ("adult", "credit", "german", "crime")
        for recipe in ("paper", "mild")
    ]


def _fixed(recipe: str, every_eps: tuple[float, ...]) -> list[str]:
    return [
        f"{recipe}/{data}_{widths}|{metric}|{eps}"
        for data in ("adult", "credit", "german", "crime")
        for widths in WIDTHS
        for metric in ("mahalanobis", "linf")
        for eps in every_eps
    ]


def _smooth() -> list[str]:
    return [
        f"smooth/{data}_{activation}_{widths}|{metric}|0.2"
        for data in ("german", "adult", "crime")
        for activation in ("sigmoid", "tanh", "gelu")
        for widths in ("16", "16x16")
        for metric in ("mahalanobis", "linf")
    ]


def _wide() -> list[str]:
    return [
        f"wide/{data}_{widths}|mahalanobis|0.2" for data in ("adult", "crime") for widths in ("512x512", "2048x2048")
    ]


def _smoke() -> list[str]:
    return [
        "paper/adult_8|linf|0.05",
        "paper/adult_8|box|0.05",
        "paper/german_8|mahalanobis|0.2",
        "mild/german_8|linf|0.2",
    ]


GRIDS: dict[str, Grid] = {
    "smoke": Grid(_smoke, ("auto",), 20.0),
    "adult": Grid(_adult, ("auto",), 20.0, threads=2),
    "known": Grid(lambda: list(known()), ("auto",), 20.0),
    "mild": Grid(lambda: _fixed("mild", (0.05, 0.2)), ("auto",), 180.0, threads=2),
    "paper": Grid(lambda: _fixed("paper", (0.01, 0.05, 0.1, 0.15, 0.2, 0.25)), ("auto",), 180.0, threads=2),
    "settings": Grid(_settings, ("auto",), 60.0, threads=2),
    "smooth": Grid(_smooth, ("auto",), 60.0, gap=1e-3, threads=2),
    "versus": Grid(_versus, ("auto", "milp", "paper"), 180.0),
    "wide": Grid(_wide, ("auto",), 180.0, threads=2),
}
