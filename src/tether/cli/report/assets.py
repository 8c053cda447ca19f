"""Style and script of the page."""

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 1200px; background: #fff; color: #1a1a1a;
  font: .94rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; line-height: 1.2; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ccc; }
p { margin: .4rem 0; }
.message { font-weight: 600; padding: .4rem .7rem; border-left: 5px solid #008060;
  background: #eef7f3; }
.message.failed { border-color: #b00020; background: #fdeef0; }
.warning { padding: .3rem .7rem; border-left: 5px solid #c77700; background: #fff6e5; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { padding: .15rem .7rem .15rem 0; text-align: left; vertical-align: top; }
th.number { text-align: right; }
thead th { border-bottom: 1px solid #999; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.formulas td { font-family: "STIX Two Text", Cambria, Georgia, serif; font-size: 1rem; }
.formulas th { color: #666; font-weight: 400; }
sup { line-height: 0; }
pre { font: .85rem/1.4 ui-monospace, monospace; white-space: pre-wrap; background: #f6f6f6;
  padding: .6rem; margin: .5rem 0; }
.charts { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; font-size: .9rem; }
figcaption output, .note { font-weight: 400; }
figure > svg { width: 100%; height: auto; display: block; }
.chart svg { touch-action: pan-y; max-width: 640px; }
svg text { font: 11px system-ui, sans-serif; fill: #333; }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.axis { fill: none; stroke: #555; }
.grid { stroke: #e4e4e4; }
.cursor { stroke: #999; stroke-dasharray: 2 2; }
.legend { list-style: none; margin: 0; padding: 0; font-size: .85rem; display: flex;
  flex-wrap: wrap; gap: .1rem 1.1rem; }
.legend output { font-variant-numeric: tabular-nums; color: #555; }
.key { width: 28px; height: 8px; margin-right: .35rem; vertical-align: middle; }
rect.y, .box.y { fill: #cfe3f3; background: #cfe3f3; }
rect.slope, .box.slope { fill: #1f5f99; background: #1f5f99; }
rect.match, .box.match { stroke: #d55e00; stroke-width: 2.5; border: 2px solid #d55e00; }
.box { display: inline-block; width: .8em; height: .8em; vertical-align: -.05em; }
footer { margin-top: 2rem; color: #666; font-size: .85rem; }
@media print {
  html { font-size: 12px; }
  body { max-width: none; padding: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .charts { grid-template-columns: 1fr 1fr; }
  figure, tr, .message { break-inside: avoid; }
  h2 { break-after: avoid; }
  .wide { overflow: visible; }
}
"""

# Values go into the page as text only, never as markup.
SCRIPT = """
for (const figure of document.querySelectorAll("figure.chart")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const svg = figure.querySelector(":scope > svg");
  const cursor = svg.querySelector(".cursor");
  const time = figure.querySelector("figcaption output");
  const values = figure.querySelectorAll(".legend output");
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    let best = 0;
    data.x.forEach((place, i) => {
      if (Math.abs(place - x) < Math.abs(data.x[best] - x)) best = i;
    });
    if (!data.x.length) return;
    cursor.setAttribute("transform", `translate(${data.x[best]} 0)`);
    cursor.setAttribute("visibility", "visible");
    time.textContent = `at t = ${data.t[best]}`;
    values.forEach((value, line) => { value.textContent = data.y[line][best]; });
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    time.textContent = "";
    values.forEach(value => { value.textContent = ""; });
  });
}
"""
