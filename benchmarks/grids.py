"""The tables of cells that can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from instances import WIDTHS, known

Limit = tuple[float, float]  # seconds, and the gap that is wanted by then


@dataclass(frozen=True, slots=True)
class Grid:
    """Questions by name, the engines to run each with, and the seconds and the gap for each, perhaps by its name."""

    names: Callable[[], Iterable[str]]
    engines: tuple[str, ...]
    seconds: float
    gap: float = 1e-5
    threads: int = 1
    by_name: Callable[[str], Limit] | None = None

    def limit(self, name: str) -> Limit:
        """Return the seconds for a question, and the gap that is wanted."""
        return self.by_name(name) if self.by_name else (self.seconds, self.gap)


SMALL = ("8", "16", "24", "8x8")
OF_MILD: dict[str, Limit] = {  # by widths
    **dict.fromkeys(("8", "16", "24", "32", "8x8"), (10.0, 1e-5)),
    **dict.fromkeys(("16x16", "16x16x16"), (60.0, 1e-4)),
    **dict.fromkeys(("64", "16x16x16x16"), (180.0, 1e-3)),
    "64x64": (180.0, 0.02),
}


def _of_paper(name: str) -> Limit:
    """Return what is wanted of the networks trained as published."""
    data, widths = name.split("/")[1].split("|")[0].split("_")
    if data in ("adult", "credit"):
        return 60.0, 1e-5
    return (60.0, 1e-4) if widths in SMALL else (180.0, 0.02)


def _of_mild(name: str) -> Limit:
    """Return what is wanted of the other networks; of crime's, an answer within 1e-4 in a minute where that is less."""
    data, widths = name.split("/")[1].split("|")[0].split("_")
    limit = OF_MILD[widths]
    return (60.0, 1e-4) if data == "crime" and limit[1] < 1e-4 else limit


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
    "mild": Grid(lambda: _fixed("mild", (0.05, 0.2)), ("auto",), 180.0, threads=2, by_name=_of_mild),
    "paper": Grid(
        lambda: _fixed("paper", (0.01, 0.05, 0.1, 0.15, 0.2, 0.25)), ("auto",), 180.0, threads=2, by_name=_of_paper
    ),
    "settings": Grid(_settings, ("auto",), 60.0, threads=2),
    "smooth": Grid(_smooth, ("auto",), 60.0, gap=1e-3, threads=2),
    "versus": Grid(_versus, ("auto", "milp", "paper"), 180.0),
    "wide": Grid(_wide, ("auto",), 180.0, threads=2),
}
