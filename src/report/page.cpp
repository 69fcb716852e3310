#include "report/page.h"

#include <fmt/format.h>

#include "report/markup.h"

namespace penstock::report {
namespace {

constexpr const char* kStyle = R"CSS(
:root { color-scheme: light dark; --paper: #fcfcfb; --ink: #16181d; --soft: #5a6270; --rule: #dfe2e7; --card: #f3f4f6;
  --forward: #2a6fd6; --backward: #7fa9e8; --update: #64708a; --recompute: #d97b00; --stall: #d3243f;
  --reads: #0e8577; --writes: #8a4fc9; --network: #a0661c; --program: #9aa3b1; --need: #d8dce3; --limit: #16181d;
  --kept: #2a6fd6; --swapped: #8a4fc9; --recomputed: #d97b00; }
@media (prefers-color-scheme: dark) { :root { --paper: #14161a; --ink: #e8eaee; --soft: #a2a9b6; --rule: #30353e;
  --card: #1d2026; --forward: #5b96ee; --backward: #2f5c9f; --update: #8a96ad; --recompute: #f0a03c; --stall: #ff5a6e;
  --reads: #2fb3a2; --writes: #b184ea; --network: #d09a52; --program: #6b7482; --need: #343a45; --limit: #f2f3f5;
  --kept: #5b96ee; --swapped: #b184ea; --recomputed: #f0a03c; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 18px; line-height: 1.3; margin: 36px 0 8px; }
p { margin: 6px 0; overflow-wrap: anywhere; }
.answer b { display: block; color: var(--soft); font-weight: 600; font-size: 13px; }
.answer { background: var(--card); border-left: 4px solid var(--forward); padding: 10px 14px; margin: 10px 0; border-radius: 4px; }
.warn { border-left-color: var(--stall); }
.soft, .x-title, caption { color: var(--soft); font-size: 13px; }
.plot, .lane, .x-axis { position: relative; margin-left: 74px; }
.x-title { text-align: center; margin-left: 74px; }
.plot { margin-top: 14px; }
.plot svg, .lane svg { position: absolute; left: 0; top: 0; width: 100%; height: 100%; overflow: visible; }
.lane { margin-top: 6px; height: 26px; background: var(--card); }
.lane .name { position: absolute; right: 100%; width: 74px; padding-right: 8px; text-align: right; line-height: 26px; font-size: 13px; color: var(--soft); }
.y { position: absolute; right: 100%; width: 74px; padding-right: 8px; text-align: right; transform: translateY(-50%); font-size: 12px; line-height: 1; color: var(--soft); white-space: nowrap; }
.level { position: absolute; right: 0; padding: 0 4px; transform: translateY(-100%); margin-top: -3px; font-size: 12px; line-height: 1.3; font-weight: 600; background: var(--paper); border-radius: 3px; }
.x-axis { height: 20px; border-top: 1px solid var(--soft); }
.x { position: absolute; top: 3px; transform: translateX(-50%); font-size: 12px; line-height: 1.3; color: var(--soft); white-space: nowrap; }
.legend { margin: 8px 0 0 74px; font-size: 13px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 2px 16px; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; background: currentColor; }
path { vector-effect: non-scaling-stroke; }
.grid { stroke: var(--rule); stroke-width: 1; fill: none; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.area { stroke: none; fill: currentColor; }
.dot { fill: none; stroke: currentColor; stroke-width: 8; stroke-linecap: round; }
.budget { color: var(--limit); stroke-width: 2; stroke-dasharray: 7 4; }
.forward { color: var(--forward); } .backward { color: var(--backward); } .update { color: var(--update); }
.recompute { color: var(--recompute); } .stall { color: var(--stall); } .reads { color: var(--reads); }
.writes { color: var(--writes); } .network { color: var(--network); } .program { color: var(--program); } .need { color: var(--need); }
.memory { color: var(--forward); } .prefetched { color: var(--reads); } .kept { color: var(--kept); }
.swapped { color: var(--swapped); } .recomputed { color: var(--recomputed); }
.c0 { color: var(--forward); } .c1 { color: var(--recompute); } .c2 { color: var(--reads); } .c3 { color: var(--writes); }
.c4 { color: var(--stall); } .c5 { color: var(--update); } .c6 { color: var(--network); } .c7 { color: var(--backward); }
rect { fill: currentColor; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 6px; }
th, td { text-align: right; padding: 4px 8px; border-bottom: 1px solid var(--rule); vertical-align: middle; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 600; font-size: 13px; }
table.figures td:last-child { overflow-wrap: anywhere; }
table.figures td:first-child, table.grid td:first-child, table.grid th:first-child { overflow-wrap: normal; white-space: nowrap; }
table.grid th { overflow-wrap: anywhere; }
.narrow { display: none; }
.line.strong { stroke-width: 3.5; }
td.bar { width: 42%; min-width: 90px; }
.bar div { display: flex; height: 14px; }
.bar span { background: currentColor; height: 14px; }
.stack { display: flex; height: 26px; border-radius: 3px; overflow: hidden; background: var(--card); }
.stack span { background: currentColor; height: 26px; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
pre { background: var(--card); padding: 10px 12px; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere; margin: 6px 0; }
footer { margin-top: 40px; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
@media (max-width: 560px) { main { padding: 16px 12px 32px; } h1 { font-size: 20px; }
  .plot, .lane, .x-axis, .x-title { margin-left: 62px; } .y, .lane .name { width: 62px; padding-right: 6px; }
  .legend { margin-left: 0; } .odd, .wide { display: none; } .narrow { display: inline; }
  table.grid { font-size: 12px; } table.grid thead th { font-size: 11px; line-height: 1.2; } th, td { padding: 4px 4px; } table { font-size: 13px; } }
@media print { :root { color-scheme: light; } body { font-size: 11pt; background: #fff; } main { max-width: none; padding: 0; }
  section { break-inside: avoid; } section.long { break-inside: auto; } tr { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
)CSS";

}  // namespace

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<main>\n{}\n</main>\n</body>\n</html>\n",
      escape(title), kStyle, body);
}

std::string section(const std::string& title, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}\n</section>\n", escape(title), body);
}

std::string legend_entry(const std::string& css, const std::string& text) {
  return fmt::format(R"(<span><i class="{}"></i>{}</span>)", css, escape(text));
}

}  // namespace penstock::report
