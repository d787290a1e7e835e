"""The style of the page of jobs over time: light and dark, wide and narrow, screen and paper. Nothing is loaded."""

STYLE = """
:root { --ink: #17202b; --quiet: #566272; --paper: #fff; --card: #f7f8fa; --line: #dfe4ea; --accent: #24589e;
  --good: #1b7a43; --bad: #b3372b; --lost: #c8553d; --heat: 0; --heat-colour: 36, 88, 158;
  --k0: #3672b9; --k1: #e08a3c; --k2: #3f9d73; --k3: #9467b5; --k4: #cfae2d; --k5: #45b3c6; --k6: #cf5d8d;
  --k7: #98a2ae; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf1; --quiet: #9aa6b5; --paper: #12161c; --card: #1a2029;
  --line: #2d3642; --accent: #7fb2f0; --good: #63c98d; --bad: #f08a7d; --lost: #e8765e; --heat-colour: 110, 165, 235;
  --k0: #5b9be6; --k1: #eda35c; --k2: #5fbf92; --k3: #b793d6; --k4: #dfc352; --k5: #6acbdc; --k6: #e886ae;
  --k7: #8b95a2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 2rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.2rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 0; overflow-wrap: anywhere; }
section:only-child > h2 { display: none; }
h3 { font-size: 1.1rem; margin: 2.4rem 0 0.3rem; }
p { margin: 0; }
.kicker { color: var(--accent); font-size: 0.85rem; font-weight: 600; letter-spacing: 0.03em; }
.about, .note, .label, small, dd { color: var(--quiet); font-size: 0.9rem; }
.about { max-width: 60rem; margin-top: 0.4rem; }
small { font-size: 0.8rem; font-weight: 400; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 0.9rem; margin-top: 0.6rem; }
.tile { padding: 0.9rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; }
.value { font-size: 1.75rem; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; margin-top: 0.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
table.wide { width: 100%; }
th, td { padding: 0.4rem 0.6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
tr:first-child th { color: var(--quiet); font-size: 0.82rem; vertical-align: bottom; white-space: normal; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); padding-left: 0; }
tr.best th:first-child, tr.best td.bar b { color: var(--accent); }
td.bar { min-width: 9rem; text-align: left; background: linear-gradient(90deg, rgba(var(--heat-colour), 0.22)
  var(--part), transparent var(--part)) no-repeat 0.4rem 50% / calc(100% - 0.8rem) 1.35rem; }
td.bar b { font-weight: 600; padding-left: 0.4rem; }
td.heat { background: rgba(var(--heat-colour), calc(var(--heat) * 0.3)); }
td.heat small { display: block; }
figure { margin: 0; min-width: 0; }
figure.whole { grid-column: 1 / -1; }
figcaption { font-size: 0.95rem; font-weight: 600; margin-bottom: 0.35rem; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1.6rem 2rem;
  margin-top: 0.9rem; }
.small-grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: 1rem 1.4rem;
  margin-top: 0.6rem; }
.small-grid figcaption { font-size: 0.88rem; }
.plot { display: grid; grid-template: 1fr 1.5rem / 3.1rem 1fr; }
.plot.high { height: 14rem; } .plot.middle { height: 11rem; } .plot.low { height: 8rem; }
.small-grid .plot.low { height: 6.5rem; }
.plot svg { grid-area: 1 / 2; width: 100%; height: 100%; overflow: hidden; border-bottom: 1px solid var(--quiet); }
.plot .x, .plot .y { position: relative; font-size: 0.75rem; color: var(--quiet); }
.plot .y { grid-area: 1 / 1; } .plot .x { grid-area: 2 / 2; }
.y span { position: absolute; right: 0.4rem; transform: translateY(50%); white-space: nowrap; line-height: 1; }
.y span:last-child { transform: translateY(85%); }
.x span { position: absolute; top: 0.15rem; transform: translateX(-50%); white-space: nowrap; }
.x span:first-child { transform: none; }
.x span[style*="9"]:last-child { transform: translateX(-80%); }
svg line { stroke: var(--line); vector-effect: non-scaling-stroke; }
polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
polyline { stroke-width: 1.5; } polyline.strong { stroke-width: 3; }
polyline.due { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: 4 3; opacity: 0.8; }
polyline.above { stroke: var(--ink); stroke-width: 1.4; }
polygon.soft { opacity: 0.75; } polygon.lost { fill: var(--lost); opacity: 0.8; }
.c0 { fill: var(--k0); background: var(--k0); } .c1 { fill: var(--k1); background: var(--k1); }
.c2 { fill: var(--k2); background: var(--k2); } .c3 { fill: var(--k3); background: var(--k3); }
.c4 { fill: var(--k4); background: var(--k4); } .c5 { fill: var(--k5); background: var(--k5); }
.c6 { fill: var(--k6); background: var(--k6); } .c7 { fill: var(--k7); background: var(--k7); }
.s0 { stroke: var(--k0); } .s1 { stroke: var(--k1); } .s2 { stroke: var(--k2); } .s3 { stroke: var(--k3); }
.s4 { stroke: var(--k4); } .s5 { stroke: var(--k5); } .s6 { stroke: var(--k6); } .s7 { stroke: var(--k7); }
.d1 { stroke-dasharray: 7 4; } .d2 { stroke-dasharray: 2 3; }
.legend { display: flex; flex-wrap: wrap; gap: 0.15rem 1rem; margin: 0.45rem 0 0; padding: 0; list-style: none;
  font-size: 0.83rem; color: var(--quiet); }
.legend i { display: inline-block; width: 0.75rem; height: 0.75rem; margin-right: 0.4rem; border-radius: 2px; }
.legend.of-lines i { height: 0.25rem; width: 1.6rem; vertical-align: middle; }
.legend i.d1 { mask: repeating-linear-gradient(90deg, #000 0 0.42rem, transparent 0 0.6rem); }
.legend i.d2 { mask: repeating-linear-gradient(90deg, #000 0 0.14rem, transparent 0 0.3rem); }
details.policy { margin-top: 0.9rem; padding: 0.9rem 1.1rem; border: 1px solid var(--line); border-radius: 0.6rem; }
details.policy[open] { padding-bottom: 1.4rem; }
summary { cursor: pointer; }
summary .name { font-size: 1.1rem; font-weight: 650; }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 3px; }
details.data { margin-top: 0.45rem; font-size: 0.85rem; }
details.data > summary { color: var(--accent); width: max-content; }
details.data table { font-size: 0.8rem; } details.data th, details.data td { padding: 0.2rem 0.6rem; }
.nothing { color: var(--quiet); padding: 1.2rem 0; }
.notes { margin: 0.3rem 0 0; padding-left: 1.2rem; color: var(--quiet); font-size: 0.9rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
footer h3 { margin-top: 1.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1.2rem; margin: 0.3rem 0 0; font-size: 0.9rem; }
dt { font-weight: 600; } dd { margin: 0; }
@media (max-width: 40rem) { body { padding: 1.2rem 0.9rem 2rem; } h1 { font-size: 1.5rem; }
  th:first-child { max-width: 42vw; min-width: 8rem; white-space: normal; overflow-wrap: anywhere; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 0.6rem; } .tile { padding: 0.7rem 0.75rem; }
  .value { font-size: 1.35rem; } details.policy { padding: 0.8rem; } dl { display: block; } dt { margin-top: 0.5rem; }
  .plot { grid-template-columns: 2.6rem 1fr; } }
@media print { details.policy { break-inside: avoid; } body { max-width: none; padding: 0; } }
"""
