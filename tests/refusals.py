"""What every refused model file has in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise import InputError
from likewise.load import load


def refuses(path: Path, kind: type[InputError], *culprits: str) -> None:
    """Expect an error of at most three lines that names the file and the culprits."""
    with pytest.raises(kind) as caught:
        load(path)
    message = str(caught.value)
    assert path.name in message
    assert message.count("\n") < 3
    for culprit in culprits:
        assert culprit in message.replace(str(path.parent), "")
