"""The front door of training: examples and settings in, a trained network with its certificate out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from likewise.certificate import Certificate
from likewise.errors import InputError
from likewise.network import Network
from likewise.problem import Problem
from likewise.search import search
from likewise.train import checkpoint
from likewise.train.bound import twin_bound
from likewise.train.certified import certified
from likewise.train.examples import Examples
from likewise.train.ftu import ftu
from likewise.train.layers import Layers, from_network, initial
from likewise.train.loop import Progress, fit, start
from likewise.train.method import Context, Method
from likewise.train.milp import milp
from likewise.train.sensr import sensr
from likewise.train.settings import Settings
from likewise.train.target import Certify, Keeper, Resumed, deployed, settle, towards
from likewise.train.trained import Trained

GAP = 1e-5  # of the final certificate; with a delta, a hundredth of it if that is more

METHODS: Mapping[str, Callable[[Context], Method]] = {
    "certified": lambda context: certified(context, None),
    "milp": milp,
    "sensr": sensr,
    "ftu": ftu,
}


def train(
    examples: Examples,
    settings: Settings,
    *,
    begin: Network | None = None,
    progress: Progress | None = None,
    keep: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int | None = None,
) -> Trained:
    """Train a network and certify what will be used.

    `begin` is a network to start from instead of random weights (its own widths count, not settings.hidden). The state
    is kept in the file `keep` after each epoch; with `resume` the training goes on from there if the file exists.
    """
    if settings.delta is not None and not settings.certify:
        raise InputError("a delta needs a certificate: give certify more than 0 seconds")
    with one_thread():
        context = context_of(examples, settings)
        layers = begin_layers(context, begin)
        keeper = Keeper(None if keep is None else Path(keep), checkpoint.question(examples, settings, begin))
        resumed = _resumed(keeper, resume)
        certify = certifier(examples, settings, threads)
        if settings.delta is not None:
            best, rounds = towards(context, layers, certify, keeper, progress, resumed)
            history = [line for one in rounds for line in one.history]
            seconds = sum(one.seconds for one in rounds)
            return _trained(context, best.network, history, seconds, best.proven)
        method = METHODS[settings.method](context)
        state = resumed[0] if resumed is not None else start(layers, settings.seed)
        fit(context, method, state, progress=progress, keep=lambda after: keeper(after, {}))
        settle(context, method, state)
        network = deployed(context, method, state)
        proven = certify(network) if settings.certify else None
        return _trained(context, network, state.history, state.seconds, proven)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread for a while: small layers gain nothing from more, and sums keep their order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def context_of(examples: Examples, settings: Settings) -> Context:
    """Return what every method is made from."""
    y = examples.y_train
    shift, unit = (0.0, 1.0) if examples.is_classes else (float(y.mean()), float(y.std()) or 1.0)
    bound = twin_bound(examples.domain, examples.metric, settings.eps, examples.X_train)
    return Context(examples, settings, bound, shift, unit)


def certifier(examples: Examples, settings: Settings, threads: int | None) -> Certify:
    """Return the function that certifies a network for these people."""

    def certify(network: Network) -> Certificate:
        problem = Problem(network, examples.domain, examples.domain, examples.metric, settings.eps)
        gap = max(GAP, 0.01 * (settings.delta or 0.0))
        count = threads or os.cpu_count() or 1
        return search(
            problem, engine="auto", solver="highs", seconds=settings.certify, gap=gap, delta=None, threads=count
        )

    return certify


def begin_layers(context: Context, network: Network | None) -> Layers:
    """Return the layers to start from, as the method trains them."""
    examples, settings = context.examples, context.settings
    if network is None:
        widths = [examples.domain.width, *settings.hidden, 1]
        seen = (examples.X_train != 0).any(axis=0)
        layers = initial(widths, np.random.default_rng((settings.seed, 0)), seen)
    else:
        layers = from_network(network, examples.is_classes, examples.domain.width)
        weight, bias = layers[-1]
        layers[-1] = (weight / context.unit, (bias - context.shift) / context.unit)
    return context.bound.raw(layers) if settings.method == "certified" else layers


def _resumed(keeper: Keeper, resume: bool) -> Resumed:
    if not resume:
        return None
    if keeper.path is None:
        raise InputError("resume needs the checkpoint to go on from: give keep")
    return checkpoint.load(keeper.path, keeper.asked) if keeper.path.exists() else None


def _trained(
    context: Context,
    network: Network,
    history: list[dict[str, float]],
    seconds: float,
    proven: Certificate | None,
) -> Trained:
    examples = context.examples
    return Trained(network, tuple(history), seconds, context.settings, examples.schema, examples.is_classes, proven)
