"use strict";
(() => {
  const root = document.documentElement;
  const errors = [];
  addEventListener("error", (event) => { errors.push(event.message); root.dataset.errors = errors.join(" | "); });
  const data = JSON.parse(document.getElementById("data").textContent);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  let which = "before";

  const layout = (extra) => {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    const merged = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 55, r: 12, t: 12, b: 80 },
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--accent") }, ...extra,
    };
    for (const name of ["xaxis", "yaxis", "yaxis2"]) if (merged[name]) merged[name] = { ...axis, ...merged[name] };
    return merged;
  };
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };

  const drawValues = (curves) => {
    const { edges, counts, grid, top, bottom, zero } = curves;
    const low = edges[0], high = edges.at(-1);
    const mid = counts.map((_, i) => (edges[i] + edges[i + 1]) / 2);
    const band = (x0, x1, fillcolor, opacity) => ({ type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, fillcolor, opacity, line: { width: 0 }, layer: "below" });
    const shapes = [];
    if (high > top) shapes.push(band(top, high, css("--bad"), 0.18));
    if (low < bottom) shapes.push(band(low, bottom, css("--bad"), 0.18));
    if (zero[1] > zero[0]) shapes.push(band(Math.max(zero[0], low), Math.min(zero[1], high), css("--c5"), 0.3));
    const traces = [{ type: "bar", name: "values", x: mid, y: counts, width: edges[1] - edges[0], marker: { color: css("--accent") }, hovertemplate: "%{y} values near %{x:.4g}<extra></extra>" }];
    if (grid.length) traces.push({ type: "scatter", mode: "markers", name: "codes", x: grid, y: grid.map(() => 0), yaxis: "y2", marker: { symbol: "line-ns-open", size: 9, color: css("--ink") }, hovertemplate: "code value %{x}<extra></extra>" });
    const unit = curves.many > 1 ? "value / its scale" : `value / scale (${+curves.scale.toPrecision(4)})`;
    return Plotly.react("values", traces, layout({
      bargap: 0, shapes, showlegend: false,
      xaxis: { title: { text: `${unit}, in ${curves.format}` }, range: [low, high], zeroline: false, anchor: "free", position: 0 },
      yaxis: { title: { text: "values" }, domain: [0.08, 1], rangemode: "tozero" },
      yaxis2: { domain: [0, 0.06], showticklabels: false, showgrid: false, zeroline: false, fixedrange: true },
    }), config);
  };

  const drawErrors = (curves) => {
    const b = curves.binades;
    const bar = (name, y, color) => ({ type: "bar", name, x: b.e, y, yaxis: "y2", marker: { color }, opacity: 0.55, hovertemplate: `%{y} ${name}<extra></extra>` });
    const traces = [bar("kept", b.kept, css("--accent")), bar("become 0", b.zeroed, css("--c5")), bar("clamped", b.clamped, css("--bad")),
      { type: "scatter", mode: "lines+markers", name: "error", x: b.e, y: b.error.map((r) => (r ? 100 * r : null)), line: { color: css("--ink"), width: 2 }, marker: { size: 5 }, hovertemplate: "off by %{y:.3g}%<extra></extra>" }];
    const first = Math.max(b.e[0] ?? -8, (b.e.at(-1) ?? 0) - 30);
    return Plotly.react("errors", traces, layout({
      barmode: "stack", hovermode: "x unified", bargap: 0.1,
      xaxis: { title: { text: "magnitude |x|" }, tickprefix: "2<sup>", ticksuffix: "</sup>", range: [first - 0.7, (b.e.at(-1) ?? 0) + 0.7], zeroline: false },
      yaxis: { title: { text: "error, % of the value" }, type: "log", dtick: 1, overlaying: "y2" },
      yaxis2: { side: "right", showgrid: false, showticklabels: false, zeroline: false, rangemode: "tozero" },
    }), config);
  };

  const draw = () => {
    const curves = data[which];
    return curves && document.getElementById("values") ? Promise.all([drawValues(curves), drawErrors(curves)]) : Promise.resolve();
  };
  const choices = document.getElementById("which");
  if (choices) choices.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    which = button.dataset.which;
    for (const other of choices.children) other.setAttribute("aria-pressed", other === button);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw().then(() => { root.dataset.ready = "true"; });
})();
