"""The docs say what the code does: commands run and print what is shown, options and codes are all there.

A `console` block holds commands (`$ berth …`, run here, in the repository's root) with what they print, stderr
included. A line with nothing but `…` stands for lines left out. `$ echo $?` shows the exit code; without it the code
is 0. BERTH_UPDATE_GOLDEN=1 writes the output anew; look at the difference before it is committed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from berth.app.cli.main import cli, main
from berth.model.reasons import Block, Reason
from devcluster.nodes import fake_nodes
from devcluster.pods import gpu_pod

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("examples/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"])
BLOCK = re.compile(r"(?m)^```console\n(.*?)^```$", re.S)
LEFT_OUT = "…"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def console_blocks() -> Iterator[pytest.param]:
    for page in PAGES:
        for number, found in enumerate(BLOCK.finditer(page.read_text())):
            yield pytest.param(page, number, found[1], id=f"{name_of(page)}-{number}")


def run(command: str) -> tuple[int, str]:
    """(exit code, what a terminal would show of it)."""
    program, *arguments = shlex.split(command)
    assert program == "berth", f"a console block runs berth, not {program}: use another block for it"
    shown = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return code, shown.getvalue()


def as_shown(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.rstrip().splitlines())


def told(block: str) -> list[tuple[str, str]]:
    """(command, output) of each command of a block."""
    parts = re.split(r"(?m)^\$ (.+)\n", block)[1:]
    return [(command, as_shown(output)) for command, output in zip(parts[::2], parts[1::2], strict=True)]


EXPECTED = re.compile(r"in\\ [^\n]+?,\\ probably\\ [^\n]+")


def is_like(shown: str, output: str) -> bool:
    pattern = "\n".join(".*" if line.strip() == LEFT_OUT else re.escape(line) for line in shown.splitlines())
    pattern = EXPECTED.sub(r"in [^\\n]+ to [^\\n]+, probably [^\\n]+", pattern)  # counted from now
    return re.fullmatch(pattern, output, re.S) is not None


@pytest.fixture(autouse=True)
def _as_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for variable in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "BERTH_DATA", "BERTH_TRACEBACK"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(("page", "number", "block"), list(console_blocks()))
def test_commands_print_what_is_shown(page: Path, number: int, block: str) -> None:
    commands = told(block)
    assert commands, "a console block without a command"
    made, differences, code = [], [], 0
    for i, (command, shown) in enumerate(commands):
        if command == "echo $?":
            output = str(code)
        else:
            code, output = run(command)
            output = as_shown(output)
            if i + 1 == len(commands) or commands[i + 1][0] != "echo $?":
                assert code == 0, f"{command} ends with {code}, and the page does not say so:\n{output}"
        fits = is_like(shown, output)
        made.append(f"$ {command}\n{shown if fits else output}".rstrip())
        if not fits:
            differences.append(f"{command} prints\n{output}\n\nand the page shows\n{shown}")
    if differences and os.environ.get("BERTH_UPDATE_GOLDEN"):
        blocks = iter(range(10_000))
        written = "\n".join(made) + "\n"
        page.write_text(
            BLOCK.sub(lambda m: f"```console\n{written}```" if next(blocks) == number else m[0], page.read_text())
        )
    assert not differences, "\n\n".join(differences) + "\n\nlook at it, then BERTH_UPDATE_GOLDEN=1"


def commands_of(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands_of(found, f"{name} {below}")


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (DOCS / "cli.md").read_text()
    sections = {title.strip("` "): text for title, _, text in (s.partition("\n") for s in page.split("\n## ")[1:])}
    common = sections["Options that several commands have"]
    for name, command in commands_of(cli, "berth"):
        if isinstance(command, click.Group) and name not in ("berth", "berth data"):
            continue
        assert name in sections, f"docs/cli.md has no section {name}"
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in parameter.opts:
                    assert f"`{option}" in sections[name] or f"`{option}" in common, f"{name} {option} is not told"


@pytest.mark.parametrize("code", [*Reason, *(b for b in Block if b)], ids=lambda c: c.name)
def test_every_code_is_told(code: Reason | Block) -> None:
    said = [page.name for page in DOCS.glob("*.md") if re.search(rf"(?<!\w){code.name}(?!\w)", page.read_text())]
    assert "reasons.md" in said
    if isinstance(code, Block):
        assert "filters.md" in said, "docs/filters.md says which check makes it"


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "index.md").read_text()
    pages = [p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if p.name != "index.md"]
    assert [p for p in pages if f"({p})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{name_of(page)}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: {link} has no such heading"


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    page = (DOCS / "internals" / "dependencies.md").read_text().lower()
    for requirement in wanted:
        name = re.split(r"[<>=!~ ;\[]", requirement)[0].lower()
        assert f"| {name} |" in page, f"docs/internals/dependencies.md has no row for {name}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "ARCHITECTURE.md"], ids=name_of)
def test_pages_tell_what_is_there_and_not_what_a_release_lacks(page: Path) -> None:
    """Such a sentence is true for a while only, and nothing shows when it no longer is."""
    said = re.findall(r"(?i)\b(?:this|a later|the next|a future) release\b.*", page.read_text())
    assert said == [], f"{name_of(page)}: say what is there, and what is not, without naming a release"


def test_every_example_is_told() -> None:
    page = (ROOT / "examples" / "README.md").read_text()
    files = [f.relative_to(ROOT / "examples").as_posix() for f in (ROOT / "examples").rglob("*.yaml")]
    assert [f for f in files if f"`{f}`" not in page] == []


def test_live_examples_are_berths_and_fit_a_cluster_of_the_devcluster(tmp_path: Path) -> None:
    """The job runs in one rack of a hundred fake nodes, and what is to wait waits for the queue."""
    live = ROOT / "examples" / "live"
    things = [thing for f in sorted(live.glob("*.yaml")) for thing in yaml.safe_load_all(f.read_text())]
    templates = [thing["spec"].get("template", thing) for thing in things if thing["kind"] in ("Job", "Pod")]
    assert len(templates) == 3 and all(t["spec"]["schedulerName"] == "berth" for t in templates)
    used = [gpu_pod(f"p-{i}", "research", gpus=8, nodeName=f"n{i:05d}") for i in range(4)]
    pod = [gpu_pod("notebook", "research", gpus=1, nodeName="n00004")]
    cluster = [*fake_nodes(100, "h100"), *yaml.safe_load_all((live / "cluster.yaml").read_text())]
    for held, file, code, said in (
        ([], "job.yaml", 0, "rack b0/r"), ([], "pod.yaml", 0, "FITS NOW"), ([*used, *pod], "waits.yaml", 1, "31 left"),
    ):  # fmt: skip
        dump = tmp_path / "dump.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cluster, *held]}))
        ended, shown = run(f"berth check -f {live / file} --from {dump}")
        assert (ended, said in shown) == (code, True), shown
