"""The doctor's report as one page for a ticket: nothing is loaded; it prints, and reads on a telephone and at night."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from berth.base.units import capital
from berth.diagnosis.diagnose import Consequence, Diagnosis
from berth.diagnosis.finding import Finding
from berth.diagnosis.focus import Step
from berth.diagnosis.probe import Probe
from berth.views.diagnosis import docs_of, source_of


def page(
    diagnosis: Diagnosis,
    notes: Sequence[str] = (),
    steps: Sequence[Step] = (),
    probe: Probe | None = None,
    about: str = "",
) -> str:
    """Top-down like the terminal: what is wrong, how that is known, what to do, how it is proven. `about` says of what
    and when."""
    parts = [_headline(diagnosis, about), _walk(steps)]
    for number, one in enumerate(diagnosis.findings, 1):
        under = [each for each in diagnosis.consequences if each.explained_by == one]
        parts.append(_finding(number, one, under))
    if diagnosis.traps:
        parts += ["<h2>Looks like a fault and is none</h2>", *(_trap(one) for one in diagnosis.traps)]
    if diagnosis.unconfirmed:
        rows = "".join(
            f"<dt>{one.layer.name} {escape(one.what)}</dt><dd>{_code(one.how)}</dd>" for one in diagnosis.unconfirmed
        )
        parts.append(f"<h2>Not confirmed: nobody collected it</h2><dl class=missing>{rows}</dl>")
    if probe is not None:
        parts.append(
            f"<h2>A probe that splits it, offered and not run</h2>{_code(probe.command)}"
            f"<p>Passes: {escape(probe.passes)}</p><p>Fails: {escape(probe.fails)}</p>"
        )
    if notes:
        parts.append(f"<h2>Notes</h2>{_list('ul', map(escape, notes))}")
    return _PAGE.format(title=escape(_title(diagnosis)), body="\n".join(part for part in parts if part))


def _title(diagnosis: Diagnosis) -> str:
    return diagnosis.findings[0].title if diagnosis.findings else "no fault found"


def _headline(diagnosis: Diagnosis, about: str) -> str:
    gate = diagnosis.gate
    first = diagnosis.findings[0] if diagnosis.findings else None
    kind = first.severity.name.lower() if first else "fine" if gate.go else "open"
    subject = f"<p class=subject>{escape(first.subject)}</p>" if first and first.subject else ""
    word = "Go on" if gate.go else "Stop"
    sentence = gate.sentence.partition(": ")[2] or gate.sentence
    return (
        f"<header class={kind}><p class=about>berth doctor{f' · {escape(about)}' if about else ''}</p>"
        f"<h1>{escape(capital(_title(diagnosis)))}</h1>{subject}"
        f"<p class=gate><b>{word}</b> at {escape(gate.stage)}: {escape(sentence)}</p></header>"
    )


def _walk(steps: Sequence[Step]) -> str:
    if not steps:
        return ""
    words = {True: ("yes", "fine"), False: ("no", "critical"), None: ("?", "warning")}
    rows = "".join(
        f"<tr><td>{one.layer.name}</td><td class={words[one.holds][1]}>{words[one.holds][0]}</td>"
        f"<td>{escape(one.question)}: {escape(one.answer)}</td></tr>"
        for one in steps
    )
    return f"<h2>The way down</h2><table>{rows}</table>"


def _finding(number: int, one: Finding, under: Sequence[Consequence]) -> str:
    explains = (
        f"<b>{each.finding.layer.name} {escape(each.finding.code)}</b> {escape(each.finding.title)}" for each in under
    )
    rows = [
        ("seen", "".join(_quote(source_of(origin), origin.time, origin.text) for origin in one.evidence)),
        ("if not", _lines((one.counter_check,))),
        ("mend", _list("ol", map(escape, one.fix.steps))),
        ("risk", _lines((one.fix.risk,))),
        ("undo", _lines((one.fix.rollback,))),
        ("verify", "".join(_code(step) for step in one.verify)),
        ("explains", _list("ul", explains) if under else ""),
    ]
    cells = "".join(f"<dt>{name}</dt><dd>{cell}</dd>" for name, cell in rows if cell)
    return (
        f"<section class={one.severity.name.lower()} id={escape(one.code)}-{number}><h2>{number}. {escape(one.code)}"
        f"<small>{one.layer.name} {escape(one.layer.words)} · {escape(one.cause_class)} · {one.severity.name.lower()}"
        f" · {one.confidence:.0%} sure</small></h2><p class=cause>{escape(capital(one.cause))}</p><dl>{cells}</dl>"
        f"<p class=docs>{escape(docs_of(one))}</p></section>"
    )


def _trap(one: Finding) -> str:
    seen = "".join(_quote(source_of(origin), origin.time, origin.text) for origin in one.evidence)
    return (
        f"<section class=info><h2>{escape(one.code)}<small>{escape(one.layer.words)}</small></h2>"
        f"<p class=cause>{escape(capital(one.cause))}</p><dl><dt>seen</dt><dd>{seen}</dd>"
        f"<dt>check</dt><dd>{escape(one.counter_check)}</dd></dl></section>"
    )


def _quote(source: str, time: str, text: str) -> str:
    where = " · ".join(part for part in (source, time) if part)
    shown = "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else repr(c)[1:-1] for c in text.strip())
    return f"<blockquote><pre>{escape(shown)}</pre><cite>{escape(where)}</cite></blockquote>"


def _code(words: str) -> str:
    return f"<pre class=command>{escape(words)}</pre>"


def _list(kind: str, items: Iterable[str]) -> str:
    return f"<{kind}>{''.join(f'<li>{item}</li>' for item in items)}</{kind}>"


def _lines(words: Iterable[str]) -> str:
    return "<br>".join(escape(each) for each in words if each)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>berth doctor: {title}</title>
<style>
:root {{ --ink: #1b1f24; --quiet: #5b6672; --paper: #fff; --card: #f6f7f9; --line: #dde2e8; --quote: #eef1f5;
  --critical: #b3261e; --warning: #8a5a00; --fine: #1a6b38; --info: #2f5f9e; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e9ee; --quiet: #98a3b0; --paper: #14171c; --card: #1c2027;
  --line: #2e353f; --quote: #232932; --critical: #ff8a80; --warning: #f0b95a; --fine: #7bd394; --info: #8ab6f5; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 58rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0.2rem 0; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 0.5rem; }}
section h2 {{ margin: 0; }}
small {{ display: block; font-weight: normal; font-size: 0.85rem; color: var(--quiet); }}
header {{ border-left: 0.4rem solid var(--mark); padding: 0.2rem 0 0.2rem 1rem; }}
header p {{ margin: 0.2rem 0; }}
.about, .docs, cite {{ color: var(--quiet); font-size: 0.85rem; font-style: normal; }}
.gate b {{ color: var(--mark); }}
section {{ margin-top: 1.25rem; padding: 1rem 1.1rem; background: var(--card); border: 1px solid var(--line);
  border-left: 0.4rem solid var(--mark); border-radius: 0.4rem; }}
.critical, .error {{ --mark: var(--critical); }}
.warning, .open {{ --mark: var(--warning); }}
.fine {{ --mark: var(--fine); }}
.info {{ --mark: var(--info); }}
td.critical, td.warning, td.fine {{ color: var(--mark); font-weight: bold; }}
table {{ border-collapse: collapse; }}
td {{ padding: 0.15rem 1rem 0.15rem 0; vertical-align: top; }}
.cause {{ margin: 0.6rem 0; }}
dl {{ display: grid; grid-template-columns: 5.5rem minmax(0, 1fr); gap: 0.5rem 0.5rem; margin: 0; }}
dt {{ color: var(--quiet); }}
dd {{ margin: 0; }}
dl.missing {{ display: block; }}
dl.missing dd {{ margin: 0 0 0.6rem; }}
ol, ul {{ margin: 0; padding-left: 1.3rem; }}
pre {{ margin: 0; white-space: pre-wrap;
  font: 0.875rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
pre.command {{ padding: 0.15rem 0; }}
blockquote {{ margin: 0 0 0.5rem; padding: 0.4rem 0.6rem; background: var(--quote); border-radius: 0.3rem; }}
@media (max-width: 34rem) {{ dl {{ display: block; }} dt {{ margin-top: 0.6rem; }} }}
@media print {{ body {{ max-width: none; }} section {{ break-inside: avoid; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
