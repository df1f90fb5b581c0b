"""Signatures: who issued a certificate. Ed25519, from the optional library `cryptography`.

What is signed is the SHA-256 of every file inside the certificate but the signature itself, so nothing can be changed,
added or taken away. A signature says who made the file, not that it is true: that is what `check` is for.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from likewise.certificate import BROKEN, written_atomically
from likewise.errors import FileError, MissingExtra

ENTRY = "signature.json"


def sign(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> None:
    """Sign a certificate file with the private key of a PEM file; an older signature is replaced."""
    private = private_key(key)
    with _opened(path) as archive:
        message = _message(archive)
        content = {entry.filename: entry for entry in archive.infolist() if entry.filename != ENTRY}
        signature = {"algorithm": "ed25519", "signature": private.sign(message).hex()}
        with written_atomically(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
            for name in content:
                with archive.open(name) as source, target.open(name, "w", force_zip64=True) as copy:
                    while block := source.read(1 << 20):
                        copy.write(block)
            target.writestr(ENTRY, json.dumps(signature))


def private_key(path: str | os.PathLike[str]) -> Any:
    """Return the private key of a PEM file, or refuse it."""
    return _key(path, private=True)


def signed_by(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> bool:
    """Tell whether the certificate file was signed with the private half of this public key (PEM)."""
    public = _key(key, private=False)
    from cryptography.exceptions import InvalidSignature

    with _opened(path) as archive:
        if ENTRY not in archive.namelist():
            return False
        try:
            written = json.loads(archive.read(ENTRY))
            public.verify(bytes.fromhex(written["signature"]), _message(archive))
        except (InvalidSignature, *BROKEN):
            return False
    return True


def _message(archive: zipfile.ZipFile) -> bytes:
    """Return what is signed: the names and digests of all files, in order of their names."""
    names = [entry.filename for entry in archive.infolist() if entry.filename != ENTRY]
    if len(set(names)) != len(names):
        raise FileError("a file is in the certificate twice")
    lines = ["likewise signature 1"]
    for name in sorted(names):
        sha = hashlib.sha256()
        with archive.open(name) as file:
            while block := file.read(1 << 20):
                sha.update(block)
        lines.append(f"{sha.hexdigest()} {name}")
    return "\n".join(lines).encode()


def _opened(path: str | os.PathLike[str]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except BROKEN as error:
        raise FileError(f"{path} is not a certificate: {error}") from None


def _key(path: str | os.PathLike[str], private: bool) -> Any:
    """Return the Ed25519 key of a PEM file that is not encrypted."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
    except ImportError:
        raise MissingExtra("cryptography", "sign") from None
    what = "a private" if private else "a public"
    try:
        content = Path(path).read_bytes()
        found = load_pem_private_key(content, None) if private else load_pem_public_key(content)
    except OSError as error:
        raise FileError(f"cannot read the key {path}: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise FileError(f"{path} is not {what} Ed25519 key in PEM form without a password") from None
    if not isinstance(found, Ed25519PrivateKey if private else Ed25519PublicKey):
        raise FileError(f"{path} is not {what} Ed25519 key: it is of another kind")
    return found
