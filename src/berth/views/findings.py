"""Findings as documentation: a page for each layer, a section for each code, made of the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from berth.diagnosis.finding import Code, Rule
from berth.diagnosis.words import LAYER_WORDS, Layer

HEAD = "<!-- Made of src/berth/diagnosis/rules by `make findings`. Change the rule, not this page. -->"


def pages(rules: Iterable[Rule]) -> dict[str, str]:
    """File name → Markdown: README.md with all codes, and one page for each layer."""
    codes = sorted({code.name: code for rule in rules for code in rule.codes}.values(), key=lambda one: one.name)
    by_layer = {layer: [code for code in codes if code.layer is layer] for layer in Layer}
    made = {f"{layer.name}.md": _page(layer, found) for layer, found in by_layer.items()}
    made["README.md"] = _index(by_layer)
    return made


def _index(by_layer: dict[Layer, list[Code]]) -> str:
    lines = [
        "# Findings",
        "",
        HEAD,
        "",
        "What `berth doctor` may find, by the layer that has to be mended. Codes are stable: they are never renamed. "
        "`berth doctor --explain CODE` prints a section on a terminal.",
    ]
    for layer, codes in by_layer.items():
        lines += ["", f"## {layer.name}: {LAYER_WORDS[layer]}", "", "| code | what it is | class |", "|---|---|---|"]
        lines += [
            f"| [{code.name}]({layer.name}.md#{code.name.lower()}) | {code.title}{_trap(code)} | {code.cause_class} |"
            for code in codes
        ]
    return "\n".join(lines) + "\n"


def _trap(code: Code) -> str:
    return " (looks like a fault and is none)" if code.is_trap else ""


def _page(layer: Layer, codes: Sequence[Code]) -> str:
    lines = [f"# {layer.name}: {LAYER_WORDS[layer]}", "", HEAD]
    for code in codes:
        lines += ["", *_section(code)]
    return "\n".join(lines) + "\n"


def _section(code: Code) -> list[str]:
    kind = "looks like a fault and is none" if code.is_trap else code.severity.name.lower()
    return [
        f"## {code.name}",
        "",
        f"{code.title[:1].upper()}{code.title[1:]}. *{code.cause_class}, {kind}.*",
        "",
        f"**What it means.** {code.meaning}",
        "",
        f"**How it is known.** {code.known_by}",
        "",
        f"**What disproves it.** {code.disproved_by} Look: {_code(code.counter_check)}",
        "",
        "**Mend.**",
        "",
        *(f"{number}. {_code(step)}" for number, step in enumerate(code.fix.steps, 1)),
        "",
        f"Risk: {code.fix.risk}. Undo: {code.fix.rollback}.",
        "",
        "**Verify.**",
        "",
        *(f"- {_code(step)}" for step in code.verify),
        "",
        f"Sources: {'; '.join(code.sources)}.",
    ]


def _code(words: str) -> str:
    """As it stands: Markdown would swallow angle brackets."""
    return words.replace("<", "&lt;").replace("|", "\\|")
