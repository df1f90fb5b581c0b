"""torch: modules against their own forward pass in float64, state dicts, and files that must not run."""

from __future__ import annotations

import copy
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses
from torch import nn

from likewise.errors import FileError, InputError, MissingExtra, ModelError
from likewise.load import load, read_module
from likewise.network import Network


def agrees(module: nn.Module, inputs: int = 4) -> Network:
    """Load the module and compare it with its own forward pass; the module must stay as it was."""
    before = {key: value.clone() for key, value in module.state_dict().items()}
    training = [part.training for part in module.modules()]
    net = read_module(module, inputs)
    assert [part.training for part in module.modules()] == training
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())
    people = np.random.default_rng(0).normal(size=(50, inputs)) * 3
    with torch.no_grad():
        expected = copy.deepcopy(module).double().eval()(torch.from_numpy(people)).numpy()
    assert net(people).reshape(50, -1) == pytest.approx(expected.reshape(50, -1), rel=1e-9, abs=1e-9)
    return net


def lively(module: nn.Module) -> nn.Module:
    """Batch norms with statistics as if they had been trained."""
    generator = torch.Generator().manual_seed(1)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.running_mean is not None and part.running_var is not None:
            part.running_mean.normal_(generator=generator)
            part.running_var.uniform_(0.5, 2.0, generator=generator)
    return module


ACTIVATIONS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "relu": (nn.ReLU, "relu"),
    "leaky": (nn.LeakyReLU, "leaky_relu"),
    "leaky .2": (lambda: nn.LeakyReLU(0.2), "relu"),
    "prelu": (nn.PReLU, "relu"),
    "relu6": (nn.ReLU6, "relu6"),
    "hardtanh": (nn.Hardtanh, "hardtanh"),
    "hardtanh to .5": (lambda: nn.Hardtanh(-1.5, 0.5), "hardtanh"),
    "hardsigmoid": (nn.Hardsigmoid, "hardsigmoid"),
    "sigmoid": (nn.Sigmoid, "sigmoid"),
    "tanh": (nn.Tanh, "tanh"),
    "softplus": (nn.Softplus, "softplus"),
    "softplus of 2": (lambda: nn.Softplus(2.0), "softplus"),
    "elu": (nn.ELU, "elu"),
    "elu .5": (lambda: nn.ELU(0.5), "elu/relu"),
    "selu": (nn.SELU, "selu"),
    "silu": (nn.SiLU, "silu"),
    "gelu": (nn.GELU, "gelu"),
    "softsign": (nn.Softsign, "softsign"),
}


@pytest.mark.parametrize("case", ACTIVATIONS)
def test_activation(case: str) -> None:
    make, name = ACTIVATIONS[case]
    torch.manual_seed(2)
    net = agrees(nn.Sequential(nn.Linear(4, 5), make(), nn.Linear(5, 1)))
    assert "/".join(dict.fromkeys(net.layers[0].activations)) == name


def deep() -> nn.Sequential:
    torch.manual_seed(3)
    inner = nn.Sequential(nn.Linear(6, 5, bias=False), nn.BatchNorm1d(5, affine=False), nn.Tanh())
    outer = [nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(4, 6), nn.BatchNorm1d(6, eps=1e-3), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*outer, inner, nn.Identity(), nn.Linear(5, 2), nn.Softmax(dim=1))


def test_sequential_with_batch_norm_and_softmax_of_two() -> None:
    module = lively(deep())
    assert module.training
    net = agrees(module)
    assert [len(layer.bias) for layer in net.layers] == [6, 5, 2]


def test_softmax_of_five() -> None:
    assert agrees(lively(nn.Sequential(nn.Linear(4, 5), nn.Softmax(dim=1)))).outputs == 5


class Residual(nn.Module):
    """Embeddings of one-hot columns, batch norm, two skip connections, and every written-out gate."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.table = nn.Linear(3, 2, bias=False)
        self.first, self.second, self.third = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.norm, self.last = nn.BatchNorm1d(6), nn.Linear(6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([x[:, :2], self.table(x[:, 2:])], dim=1)
        h = torch.relu(self.norm(self.first(x)))
        h = h + nn.functional.gelu(self.second(h))
        h = nn.functional.silu(self.third(h)) + h
        return torch.sigmoid(self.last(h.view(h.size(0), -1)))


def test_any_module_goes_through_onnx() -> None:
    net = agrees(lively(Residual()), 5)
    assert [len(layer.bias) for layer in net.layers] == [4, 6, 12, 12, 1]
    with pytest.raises(ModelError, match="inputs=n"):  # its first Linear layer sees three columns only
        load(Residual())


@pytest.mark.filterwarnings("ignore")
def test_a_file_of_the_newest_exporter_reads_the_same(tmp_path: Path) -> None:
    module = Residual().eval()  # batch norm as it starts: both exporters fold it alike
    program = torch.onnx.export(module, (torch.zeros(2, 5),), dynamo=True, verbose=False)
    assert program is not None
    program.save(str(tmp_path / "m.onnx"), external_data=True)
    assert (tmp_path / "m.onnx.data").exists()
    people = np.random.default_rng(1).normal(size=(30, 5))
    assert load(tmp_path / "m.onnx")(people) == pytest.approx(read_module(module, 5)(people), rel=1e-6)


class Scaled(nn.Linear):
    """A Linear layer that is more than one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(x)


def test_what_only_looks_plain_is_run_and_not_assumed() -> None:
    torch.manual_seed(5)
    agrees(nn.Sequential(Scaled(4, 3), nn.ReLU(), nn.Linear(3, 1)))
    agrees(nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), nn.ReLU(), nn.Linear(3, 1)))
    hooked = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    hooked[0].register_forward_hook(lambda module, args, output: output * 3.0)
    agrees(hooked)
    outside = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    outside.register_forward_hook(lambda module, args, output: output - 1.0)
    agrees(outside)


class Branch(nn.Module):
    """A module whose path depends on the numbers, which a trace cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x) if x.sum() > 0 else -self.one(x)


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.one = nn.Conv1d(1, 1, 3), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x[:, None, :])[:, 0]


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "tanh gelu": (lambda: nn.Sequential(nn.Linear(4, 3), nn.GELU("tanh")), "'tanh'"),
    "mish": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Mish()), "module Sequential"),
    "hard swish": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Hardswish()), "HardSwish"),
    "softmax of many": (lambda: nn.Sequential(nn.Linear(4, 17), nn.Softmax(1)), "17 classes"),
    "softmax over people": (lambda: nn.Sequential(nn.Linear(4, 2), nn.Softmax(0)), "dim=0"),
    "log softmax": (lambda: nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(1)), "LogSoftmax"),
    "no statistics": (
        lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False)),
        "running statistics",
    ),
    "does not chain": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(4, 1)), "module '1'"),
    "flatten people": (lambda: nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), "mix people"),
    "nan": (lambda: nn.Sequential(spoilt(nn.Linear(4, 1))), "module '0'"),
    "a branch": (Branch, "Branch"),
    "convolution": (Image, "Conv"),
    "no layers": (nn.Sequential, "columns"),
}


def spoilt(layer: nn.Linear) -> nn.Linear:
    nn.init.constant_(layer.weight, float("nan"))
    return layer


@pytest.mark.filterwarnings("ignore")  # as for a user: what must stop the export may not rest on pytest's own filters
@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, culprit = REFUSED[case]
    with pytest.raises(ModelError, match=culprit) as caught:
        load(make())
    assert str(caught.value).count("\n") < 3


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.pt"
    torch.save(plain().state_dict(), path)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtra, match=r"likewise\[torch\]"):
            load(path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"likewise\[onnx\]"):
        read_module(Residual(), 5)


# --- files ------------------------------------------------------------------------------------------------------------


def plain() -> nn.Sequential:
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 1), nn.Sigmoid())


def saved(path: Path, what: Any) -> Path:
    torch.save(what, path)
    return path


@pytest.mark.parametrize("prefix", ["", "layers.", "model.net."])
def test_a_state_dict_is_read_and_what_is_assumed_is_said(
    prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = plain()
    state = {prefix + key: value for key, value in module.state_dict().items()}
    net = load(saved(tmp_path / "m.pth", OrderedDict(reversed(state.items()))))  # the order of the file does not matter
    assert net.digest == load(module).digest
    out, err = capsys.readouterr()
    assert out == ""
    assert "m.pth" in err
    assert "relu" in err


def test_ten_layers_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    torch.manual_seed(7)
    module = nn.Sequential(*[part for _ in range(11) for part in (nn.Linear(2, 2), nn.ReLU())][:-1], nn.Sigmoid())
    assert load(saved(tmp_path / "m.pt", module.state_dict())).digest == load(module).digest


def test_other_state_dicts_are_refused_by_the_key(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    refuses(saved(path, nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).state_dict()), ModelError, "running_mean")
    refuses(saved(path, {"0.weight": torch.ones(3)}), ModelError, "layer 0", "batch norm")
    refuses(saved(path, {"fc1.weight": torch.ones(3, 4)}), ModelError, "'fc1.weight'", "state_dict")
    refuses(saved(path, {"a.0.weight": torch.ones(3, 4), "b.0.weight": torch.ones(1, 3)}), ModelError, "'a.'", "'b.'")
    refuses(saved(path, {"0.bias": torch.ones(3)}), ModelError, "layer 0", "missing")
    refuses(saved(path, {"epoch": 3, "state_dict": plain().state_dict()}), ModelError, "'epoch'")
    refuses(saved(path, {}), ModelError, "state dict")
    refuses(saved(path, torch.ones(3)), ModelError, "Tensor")
    refuses(saved(path, {"0.weight": torch.ones(3, 4, dtype=torch.int32)}), ModelError, "'0.weight'", "int32")
    refuses(saved(path, {"0.weight": torch.full((3, 4), torch.inf)}), ModelError, "non-finite")
    refuses(saved(path, {"0.weight": torch.ones(3, 4), "2.weight": torch.ones(1, 4)}), ModelError, "layer 1")
    huge = torch.ones(1, 1).expand(1 << 20, 1 << 20)
    refuses(saved(path, {"0.weight": huge}), ModelError, "'0.weight'", "claims")


def test_a_pickled_module_is_refused_with_what_to_do(tmp_path: Path) -> None:
    refuses(saved(tmp_path / "m.pt", plain()), FileError, "run code", "state_dict")


class Trap:
    """Unpickling this creates a file."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, ("sprung", "w")


def test_files_that_are_no_models_are_refused_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refuses(tmp_path / "missing.pt", FileError, "No such file")
    refuses(saved(tmp_path / "trap.pt", {"0.weight": Trap()}), FileError, "run code")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap()))
    refuses(tmp_path / "plain.pt", FileError, "zip")
    assert not (tmp_path / "sprung").exists()
    whole = saved(tmp_path / "m.pt", plain().state_dict()).read_bytes()
    (tmp_path / "half.pt").write_bytes(whole[: len(whole) // 2])
    refuses(tmp_path / "half.pt", FileError, "zip")
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("hello", "world")
    refuses(tmp_path / "other.pt", FileError)


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "bomb.pt", plain().state_dict())
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = (3 << 30).to_bytes(4, "little")  # the uncompressed size it declares
    path.write_bytes(content)
    refuses(path, FileError, "MiB")


@pytest.mark.parametrize("step", range(0, 2600, 37))
def test_no_damage_escapes_as_anything_but_an_input_error(step: int, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pt", plain().state_dict())
    content = bytearray(path.read_bytes())
    content[step % len(content)] ^= 0x55
    path.write_bytes(content)
    complaint = ""
    try:
        loaded = load(path)
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert "m.pt" in complaint
        assert complaint.count("\n") < 3
    else:  # torch does not look at every byte of a zip file
        assert loaded.inputs == 4
