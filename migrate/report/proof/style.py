"""The style sheet of the page: for light and dark screens, narrow ones, and paper."""

CSS = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6673; --line: #d9dee4; --paper: #ffffff; --panel: #f6f8fa;
  --good: #12703a; --bad: #b3261e; --unknown: #8a5a00; --add: #e3f5e8; --del: #fdeaea;
  --c0: #1f5fbf; --c1: #c2570c; --c2: #0f7b6c; --c3: #8e3aa8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ee; --soft: #9aa6b2; --line: #343c46; --paper: #14181d; --panel: #1b2127;
    --good: #5fc98a; --bad: #ff8a80; --unknown: #e9b44c; --add: #14331f; --del: #3d1c1c;
    --c0: #74a9f7; --c1: #f0a060; --c2: #4fc4b0; --c3: #cf8fe3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1060px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 36px 0 6px; }
p { margin: 6px 0; }
p.note { color: var(--soft); max-width: 78ch; }
code, pre, .code { font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
header { border-left: 8px solid var(--tone); background: var(--panel); padding: 16px 20px; border-radius: 6px; }
.proved { --tone: var(--good); } .not-proved { --tone: var(--bad); } .could-not-run { --tone: var(--unknown); }
.could-not-be-compared { --tone: var(--unknown); } header details { margin-top: 10px; }
header .verdict { color: var(--tone); font-weight: 700; letter-spacing: .04em; }
header pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 10px 0 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 10px 0 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 12px; margin-top: 16px; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: 10px 14px; }
.tile b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; } .tile span { color: var(--soft); }
.over b, td.over { color: var(--bad); font-weight: 700; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr)); gap: 8px 28px; }
figure { margin: 8px 0 0; } figure { max-width: 620px; } svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 13px; }
.legend span { display: inline-flex; align-items: center; gap: 6px; margin-right: 16px; font-size: 13px; }
.legend i { width: 18px; border-top: 2.5px solid var(--tone); }
.legend i.dashed { border-top-style: dashed; border-top-width: 1.5px; margin-left: 4px; }
.legend i.dot { width: 8px; height: 8px; border: 0;
  border-radius: 50%; background: var(--tone); }
svg text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); } .failed { stroke: var(--bad); stroke-width: 2; }
.c0 { --tone: var(--c0); } .c1 { --tone: var(--c1); } .c2 { --tone: var(--c2); } .c3 { --tone: var(--c3); }
.curve { fill: none; stroke: var(--tone); stroke-width: 2; stroke-linejoin: round; }
.mark { fill: var(--tone); stroke: var(--paper); stroke-width: 1; } .hint { fill: transparent; }
.limit { stroke: var(--tone); stroke-dasharray: 5 4; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin-top: 8px; max-height: 640px; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--soft); font-weight: 600; position: sticky; top: 0; background: var(--panel); }
th, .figures td { padding: 4px 12px; } td { vertical-align: top; }
.figures td { border-top: 1px solid var(--line); } .figures .number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.code td { white-space: pre; padding: 0 8px; }
.code td.line { color: var(--soft); text-align: right; user-select: none; }
.code tr.add { background: var(--add); } .code tr.del { background: var(--del); }
.code tr.gap td { color: var(--soft); }
summary { cursor: pointer; } ul { margin: 6px 0; padding-left: 20px; }
@media print { .scroll { max-height: none; } }
"""
