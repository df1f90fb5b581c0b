"""The documentation works: python blocks run, sh lines run or at least exist, links lead somewhere.

The python blocks of one page share a namespace. Of the sh blocks, `likewise` lines are run (with a time limit),
`make` lines are checked by `make -n`, and only `pip` lines are left alone. All in a folder with model.npz, schema.toml,
person.csv, people.csv and data.csv. The tutorial is one story, which test_tutorial.py runs from end to end.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import SCHEMA

import likewise as lw
from likewise.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ALONE = [page for page in PAGES if page.name != "tutorial.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
KNOWN = {"", "python", "sh", "toml", "json"}


def blocks(page: Path, language: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    assert {name for name, _ in found} <= KNOWN, f"{page.name}: a block in a language that is not tested"
    return [body for name, body in found if name == language]


def sh_lines() -> list[tuple[str, str]]:
    return [(p.name, line) for p in ALONE for body in blocks(p, "sh") for line in body.splitlines() if line.strip()]


@pytest.mark.parametrize("page", [p for p in ALONE if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page: Path, folder: Path) -> None:
    namespace: dict[str, object] = {}
    for body in blocks(page, "python"):
        exec(compile(body, str(page), "exec"), namespace)


@pytest.mark.parametrize(("page", "line"), sh_lines())
def test_sh_lines_run(page: str, line: str, folder: Path) -> None:
    (folder / "people.csv").write_text("age,income,job,paid\n30,0.2,baker,yes\n50,0.9,artist,no\n200,0.1,baker,no\n")
    head, *people = (folder / "people.csv").read_text().replace("200", "60").splitlines()
    (folder / "data.csv").write_text("\n".join([head, *people * 20]) + "\n")
    command, *arguments = shlex.split(line)
    if command == "likewise":
        if "--seconds" not in arguments and arguments[0] not in ("schema", "check", "export"):
            arguments += ["--seconds", "5"]
        if arguments[0] == "check":
            assert (
                main(["certify", "model.npz", "schema.toml", "--eps", "0.1", "--seconds", "5", "-o", "model.cert"]) == 0
            )
        done = subprocess.run(
            [sys.executable, "-m", "likewise", *arguments], capture_output=True, text=True, timeout=120
        )
        assert done.returncode in (0, 10, 20), done.stderr
    elif command == "make":
        make = shutil.which("make")
        assert make, "make is not installed"
        done = subprocess.run([make, "-n", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    else:
        assert command == "pip", f"{page}: {line!r} is neither run nor known"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_schema_in_the_docs_is_one(tmp_path: Path) -> None:
    from likewise.load import read_schema

    for body in blocks(ROOT / "docs" / "certify.md", "toml"):
        (tmp_path / "schema.toml").write_text(body)
        assert [f.name for f in read_schema(tmp_path / "schema.toml").domain.features] == ["age", "children", "job"]
    assert tomllib.loads(SCHEMA)["feature"]


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == lw.__version__
    assert f"## {lw.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_exit_codes_of_the_readme(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "README.md").read_text(), re.M)
    assert [int(code) for code, _ in rows] == [0, 10, 20, 2]
    command = ["certify", "model.npz", "schema.toml", "--eps", "0.1", "--delta"]
    assert [main([*command, delta]) for delta in ("1", "0", "-1")] == [0, 10, 2]
