"""`likewise train`: train a network that treats similar people alike, certify it, and save all of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise import datasets
from likewise._api import train
from likewise.cli._console import EXIT, Ticker, note, show
from likewise.cli._inputs import model_of, require_writable, schema_of
from likewise.errors import FileError, InputError
from likewise.train.settings import METHODS, SOLVERS

if TYPE_CHECKING:
    from likewise.train.examples import Examples
    from likewise.train.trained import Trained

HELP = "train a network that treats similar people alike"
EXAMPLE = "likewise train german german --method certified --hidden 16,16 --eps 0.2 --delta 0.05 -o model.npz"
SUFFIXES = (".npz", ".onnx", ".pt", ".pth")
BESIDE = (".toml", ".cert", ".history.json", ".metric.npz", ".embedding.npz")
OPTIONS = ("delta", "epochs", "batch", "rate", "l2", "penalty", "solver", "seed", "patience")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("data", metavar="DATA", help=f"people with known outcomes: a csv file, or one of: {', '.join(datasets.NAMES)}")
    add("schema", metavar="SCHEMA", help="a toml file of who can exist and who is similar, or the same name")
    add("--method", choices=METHODS, default="certified", help="how to train (certified)")
    add("--hidden", type=_widths, default=[16, 16], metavar="16,16", help="widths of the hidden layers (16,16)")
    add("--eps", type=float, required=True, metavar="E", help="how similar two people must be")
    add("--delta", type=float, metavar="D", help="certified: how far apart they may be scored")
    add("--metric", metavar="KIND", help="mahalanobis, linf, l1, l2 or embedding, instead of the schema's")
    add("--target", metavar="Y", help="the csv column of outcomes (needed if there are several that are no features)")
    add("--sensitive", type=_names, default=[], metavar="A,B", help="csv columns to measure group fairness by")
    add("--unbalanced", action="store_true", help="do not draw as many people of either class into each batch")
    add("--no-calibrate", action="store_true", help="leave the scores as trained, without Platt scaling")
    add("--epochs", type=int, metavar="N", help="how often the people are passed")
    add("--batch", type=int, metavar="N", help="people in a batch (a 36th of them, mostly from 96 to 1024)")
    add("--rate", type=float, metavar="R", help="learning rate (0.01)")
    add("--l2", type=float, metavar="L", help="weight decay per person")
    add("--patience", type=int, metavar="N", help="epochs without progress on the validation people before stopping")
    add("--penalty", type=float, metavar="P", help="certified, without --delta: weight of the bound in the loss (1)")
    add("--solver", choices=SOLVERS, help="milp: how the worst neighbour is found (exact)")
    add("--as-published", action="store_true", help="milp: as the paper's released code does it")
    add("--seed", type=int, default=0, metavar="N", help="of weights, batches and the validation part (0)")
    add("--from", dest="begin", metavar="MODEL", help="repair this network instead of starting from random weights")
    add("--seconds", type=float, default=10.0, metavar="S", help="for the certificate (10)")
    add("--resume", action="store_true", help="go on from MODEL.checkpoint, which an unfinished run has left")
    add("--compare", action="store_true", help="train with every method and the trivial baselines, and compare")
    add("--targets", type=_numbers, metavar="D1,D2", help="with --compare: the deltas of the Pareto front")
    add("--json", action="store_true", help="print one JSON object instead of words")
    what = f"the model ({', '.join(SUFFIXES)}), or with --compare the page (.html)"
    add("-o", dest="output_file", type=Path, metavar="FILE", help=what)


def _widths(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs widths such as 16,16, got {text[:40]!r}") from None


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs numbers such as 0.01,0.1, got {text[:40]!r}") from None


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.output_file is None and not options.compare:
        raise InputError(f"name the model to write: -o model.npz (or {', '.join(SUFFIXES[1:])})")
    _check_target(options)
    examples = _examples(options)
    if options.compare:
        from likewise.cli._compare import run_compare

        return run_compare(options, examples)
    target: Path = options.output_file
    kept = target.with_name(f"{target.name}.checkpoint")
    if options.resume and not kept.exists():
        raise FileError(f"--resume: there is no {kept} to go on from")
    begin = None if options.begin is None else model_of(options.begin)
    with _follow() as ticker:
        trained = train(
            examples,
            options.method,
            options.hidden,
            options.eps,
            balanced=not options.unbalanced,
            calibrate=not options.no_calibrate,
            from_=begin,
            checkpoint=kept,
            resume=options.resume,
            progress=ticker.hear,
            certify=options.seconds,
            as_published=options.as_published or None,
            **{name: getattr(options, name) for name in OPTIONS},
        )
    note(f"saved {trained.save(target)}, with {', '.join(_beside(target))}")
    kept.unlink(missing_ok=True)
    show(_as_json(trained, examples) if options.json else _in_words(trained, examples))
    return EXIT["undecided"] if trained.reached is False else 0


def _check_target(options: argparse.Namespace) -> None:
    """Refuse, before the long run, files that cannot be written or that would replace an input."""
    target: Path | None = options.output_file
    if target is None:
        return
    inputs = [given for given in (options.data, options.schema, options.begin) if given is not None]
    if options.compare:
        if target.suffix.lower() != ".html":
            raise FileError(f"-o {target}: a comparison is written as .html")
        require_writable(target, "-o", inputs)
        return
    if target.suffix.lower() not in SUFFIXES:
        raise FileError(f"-o {target}: cannot write a model as {target.suffix!r}; known: {', '.join(SUFFIXES)}")
    for file in (target, *(target.with_suffix(end) for end in BESIDE)):
        require_writable(file, "-o", inputs)


def _beside(target: Path) -> Sequence[str]:
    return [file.name for file in (target.with_suffix(end) for end in BESIDE) if file.exists()]


def _examples(options: argparse.Namespace) -> Examples:
    from likewise.train.table import embedded, read_examples

    schema = schema_of(options.schema, options.metric)
    if options.data in datasets.NAMES:
        return embedded(options.data, schema)
    examples, notes = read_examples(options.data, schema, options.target, options.sensitive)
    for line in notes:
        note(line)
    return examples


def _follow() -> Ticker[dict[str, float]]:
    """Return the live progress of a training."""

    def line(news: dict[str, float] | None, elapsed: float) -> str:
        if news is None:
            return f"starting   {elapsed:.0f} s"
        good = f"balanced accuracy {news['balanced_accuracy']:.4f}" if "mse" not in news else f"mse {news['mse']:.5f}"
        parts = [f"epoch {news['epoch']:.0f}", f"loss {news['loss']:.5f}", good, f"delta <= {news['delta_bound']:.5f}"]
        return "   ".join([*parts, f"{elapsed:.0f} s"])

    return Ticker(line)


def _result(trained: Trained, examples: Examples) -> dict[str, Any]:
    tested = trained.measures(examples.X_test, examples.y_test) if len(examples.y_test) else {}
    proven = trained.certificate
    return {
        "method": trained.settings.method,
        "eps": trained.settings.eps,
        "delta": trained.settings.delta,
        "reached": trained.reached,
        "lower": None if proven is None else proven.lower,
        "upper": None if proven is None else proven.upper,
        "test": tested,
        "epochs": len(trained.history),
        "seconds": trained.seconds,
    }


def _as_json(trained: Trained, examples: Examples) -> str:
    return json.dumps(_result(trained, examples), allow_nan=False)


def _in_words(trained: Trained, examples: Examples) -> str:
    found = _result(trained, examples)
    lines = [f"trained {trained.network!r} by {found['method']} in {found['seconds']:.1f} s, {found['epochs']} epochs"]
    lines += [f"test {name.replace('_', ' ')}: {value:.4f}" for name, value in found["test"].items()]
    if found["upper"] is not None:
        lines.append(f"two people within eps = {found['eps']:g}: delta in [{found['lower']:.6f}, {found['upper']:.6f}]")
    if found["reached"] is not None:
        how = "is proven" if found["reached"] else "could NOT be proven: more --seconds, or another --hidden, may help"
        lines.append(f"delta <= {found['delta']:g} {how}")
    return "\n".join(lines)
