"""Signatures: who issued a file is known, and a change of any of its parts is seen."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from problems import make
from small_tree import certified

import likewise as lw
from likewise.cli import main
from likewise.sign import sign, signed_by


def key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private.write_bytes(key.private_bytes(*form))
    lines = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    public.write_bytes(lines)
    return private, public


@pytest.fixture
def signed(tmp_path):
    private, public = key_pair(tmp_path, "issuer")
    path = certified(make(28).problem).save(tmp_path / "a.cert")
    sign(path, private)
    return path, public


def test_a_signature_is_recognised_and_the_file_still_checks(signed, tmp_path):
    path, public = signed
    assert signed_by(path, public)
    assert not signed_by(path, key_pair(tmp_path, "somebody")[1])
    assert lw.check(path).ok
    assert lw.read(path).upper > 0.0


@pytest.mark.parametrize("entry", ["manifest.json", "arrays.npz", "proof/0.bin", "another.txt"])
def test_any_change_is_seen(signed, entry, tmp_path):
    path, public = signed
    changed = tmp_path / "changed.cert"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in {*old.namelist(), entry}:
            content = old.read(name) if name in old.namelist() else b""
            new.writestr(name, content + b" " if name == entry else content)
    assert not signed_by(changed, public)


def test_the_command_line_asks_for_a_signature(signed, tmp_path, capsys):
    path, public = signed
    assert main(["check", str(path), "--key", str(public)]) == 0
    assert main(["check", str(path), "--key", str(key_pair(tmp_path, "somebody")[1])]) == 10
    assert "did not sign it" in capsys.readouterr().out


def test_keys_of_another_kind_are_refused(signed, tmp_path):
    path, _ = signed
    with pytest.raises(lw.FileError, match="cannot read the key"):
        sign(path, tmp_path / "none.pem")
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "rsa.pem").write_bytes(other.private_bytes(*form))
    with pytest.raises(lw.FileError, match="of another kind"):
        sign(path, tmp_path / "rsa.pem")
    (tmp_path / "odd.pem").write_text("nothing")
    with pytest.raises(lw.FileError, match="is not a private Ed25519 key"):
        sign(path, tmp_path / "odd.pem")
