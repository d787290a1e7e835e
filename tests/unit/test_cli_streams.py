"""Commands under shells that close, cut or fill their streams: never a traceback, and exit codes that say what is."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from cli_runs import CLUSTER, here, shell

from berth.app.cli import compiled
from berth.dialects.owners import READERS

CHECK = "$BERTH check -f examples/llm-one-rack.yaml --from examples/cluster.yaml"
NODES = "$BERTH nodes --from examples/cluster.yaml"
needs_full = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")


@pytest.mark.parametrize("command", [CHECK, f"{CHECK} -o json", NODES, f"{NODES} -o json", "$BERTH --help"])
def test_a_reader_that_leaves_early(command):
    ran = shell(f"set -o pipefail; {command} | true")
    assert ran.code == 141, "as if by SIGPIPE: not to be taken for an answer"
    assert ran.err == ""


def test_the_first_line_alone():
    ran = shell(f"{NODES} | head -1")
    assert ran.out.startswith("NODE")
    assert ran.err == ""


@needs_full
def test_a_full_disk_is_told():
    ran = shell(f"{NODES} > /dev/full")
    assert ran.code == 74
    assert ran.err == "berth: output: cannot be written: No space left on device. Make room and try again.\n"


@needs_full
@pytest.mark.parametrize("stderr", ["2> /dev/full", "2>&-"])
def test_an_error_that_nobody_can_read_keeps_its_code(stderr):
    assert shell(f"$BERTH nodes --from no-such-file {stderr}").code == 3
    assert shell(f"$BERTH check -f no-such-file --from examples/cluster.yaml {stderr}").code == 2
    assert shell(f"$BERTH nodes --no-such-option {stderr}").code == 2


@pytest.mark.parametrize(
    ("line", "code"),
    [("$BERTH nodes --from - <&-", 3), ("$BERTH check -f - --from examples/cluster.yaml <&-", 2)],
)
def test_standard_input_that_is_closed(line, code):
    ran = shell(line)
    assert ran.code == code
    assert ran.err.startswith("berth: standard input: it is closed. Pipe the ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_any_encoding_can_show_an_answer(encoding):
    ran = shell(CHECK, PYTHONIOENCODING=encoding)
    assert ran.code == 1
    assert ran.err == ""
    if encoding == "ascii":
        assert "16 GPUs (4 x 4 GPUs) asked for in one rack" in ran.out


def test_names_that_are_no_text(tmp_path):
    ran = shell(r"$BERTH nodes --from $'\xff\x1b[31m'")
    assert ran.code == 3
    assert ran.err.startswith(r"berth: \udcff\x1b[31m: cannot be read: No such file")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nodes", "--from", ""),
        ("check", "-f", "", "--from", CLUSTER),
        ("check", "-f", "x", "--from", CLUSTER, "-n", " "),
        ("free", "--from", CLUSTER, "--by", ""),
        ("nodes", "--from", CLUSTER, "--gpu-classes", ""),
        ("why", "", "--from", CLUSTER),
    ],
)
def test_what_is_left_empty_is_a_usage_error(arguments):
    ran = here(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "it is empty. Write a name." in ran.err


CHECKED = "check -f examples/pytorchjob.yaml --from examples/cluster.yaml"
NO_NUMBA = "import sys; sys.modules['numba'] = None; from berth.app.cli.main import main; main()"


def test_without_numba_the_answer_is_the_same():
    assert shell(f'{sys.executable} -c "{NO_NUMBA}" {CHECKED}') == shell(f"$BERTH {CHECKED}")


def test_an_experiment_without_numba_says_what_it_needs(tmp_path):
    ran = shell(f'{sys.executable} -c "{NO_NUMBA}" simulate packing --trace {tmp_path}')
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "berth: simulate packing --trace: needs Numba, which is not installed. Install it.\n"


def test_a_cache_that_cannot_be_written():
    ran = shell(f"$BERTH {CHECKED}", NUMBA_CACHE_DIR="/proc/nowhere", HOME="/nonexistent", XDG_CACHE_HOME="/proc/none")
    assert ran == shell(f"$BERTH {CHECKED}")


def test_nowhere_to_keep_compiled_code(tmp_path, monkeypatch):
    for name in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compiled, "_is_writable", lambda folder: False)
    compiled.plain_unless_kept()
    assert os.environ.pop("NUMBA_DISABLE_JIT") == "1"
    compiled.kept_for_now()
    folder = Path(os.environ.pop("NUMBA_CACHE_DIR"))
    assert folder.is_dir()
    folder.rmdir()


def test_somewhere_to_keep_compiled_code(tmp_path, monkeypatch):
    for name in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compiled, "_SOURCES", tmp_path)
    compiled.plain_unless_kept()
    compiled.kept_for_now()
    assert not {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"} & set(os.environ)


def test_a_command_that_is_misspelt_is_told_what_is_meant():
    ran = here("schedular")
    assert ran.code == 2 and "No such command 'schedular'. Did you mean 'scheduler'?" in ran.err
    assert "Commands: check, why" in here("xyzzy").err


def test_help_of_check_names_every_kind_that_is_read():
    said = " ".join(here("check", "--help").out.split())
    assert {kind for _, kind in READERS if not re.search(rf"\b{kind}\b", said)} == set()
