"""docs/tutorial.md is run as it stands: python and sh blocks in turn, in one folder, with one namespace."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import likewise as lw
from likewise.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's exporter warns of its own code
def test_from_csv_to_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    printed: dict[str, str] = {}
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        assert language in ("python", "sh")
        if language == "python":
            exec(compile(body, str(PAGE), "exec"), namespace)
            printed[body] = capsys.readouterr().out
        for line in body.splitlines() if language == "sh" else []:
            command, *arguments = shlex.split(line)
            assert command == "likewise"
            code = main(arguments)
            seen = capsys.readouterr()
            assert code in (0, 10, 20), seen.err
            printed[line] = seen.out
    said = next(text for line, text in printed.items() if "--where" in line)
    left = re.search(r"age(?:: | )(\d+)", said)
    assert left is not None, said  # whole years
    assert 30 <= int(left.group(1)) <= 40
    assert re.search(r"occupation(?:: | )(technician|manager)\b", said)
    described = next(text for body, text in printed.items() if "witness.describe()" in body)
    assert re.search(r"age: \d+ against \d+|age \d+", described)
    table = next(text for body, text in printed.items() if "folded.show" in body)
    assert re.search(r"^age +[\d.e-]+ +[\d.e-]+  [\d.]+$", table, re.M)
    assert lw.read("german.cert").problem.network.digest == lw.load("german.onnx").digest
    assert "in this job" in Path("german.html").read_text() or "employment" in Path("german.html").read_text()
    with open("people.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["person"] for row in rows] == ["line 2", "line 3", "line 4"]
    assert all(0.0 <= float(row["lower"]) <= float(row["upper"]) for row in rows)
