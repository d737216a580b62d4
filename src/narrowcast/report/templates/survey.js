"use strict";
(() => {
  const root = document.documentElement;
  const errors = [];
  const record = (message) => { errors.push(String(message)); root.dataset.errors = errors.join(" | "); };
  addEventListener("error", (event) => record(event.message));
  addEventListener("unhandledrejection", (event) => record(event.reason));

  const data = JSON.parse(document.getElementById("data").textContent);
  const views = new Map(data.views.map((view) => [view.name, view]));
  const state = { view: "", format: data.formats.find((name) => data.grids[name]) || "", sort: {} };

  // Colours: one per format, the same in tables and plots.
  const toneOf = (name) => `var(--c${data.formats.indexOf(name) % 8})`;
  for (const item of document.querySelectorAll("[data-format]")) item.style.setProperty("--tone", toneOf(item.dataset.format));
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (name) => css(`--c${data.formats.indexOf(name) % 8}`);

  // Sortable tables. A detail row travels with the row above it.
  const groups = (body) => {
    const result = [];
    for (const row of body.rows) {
      if (row.classList.contains("detail")) result[result.length - 1].push(row); else result.push([row]);
    }
    return result;
  };
  const sortTable = (table, column, direction) => {
    const heads = table.tHead.rows[0].cells;
    const text = heads[column].dataset.kind === "text";
    const key = (group) => {
      const cell = group[0].cells[column];
      if (text) return cell.textContent.trim();
      const value = (cell.dataset.value ?? cell.textContent).trim();
      if (value === "inf") return Infinity;
      const number = parseFloat(value);
      return Number.isNaN(number) ? -Infinity : number;
    };
    const sign = direction === "descending" ? -1 : 1;
    const rows = groups(table.tBodies[0]).map((group) => [key(group), group]);
    rows.sort(([a], [b]) => sign * (text ? a.localeCompare(b, undefined, { numeric: true }) : (a > b) - (a < b)));
    table.tBodies[0].append(...rows.flatMap(([, group]) => group));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", direction);
    state.sort[table.id] = `${column},${direction}`;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (head.hasAttribute("data-fixed")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.dataset.kind === "text" ? "ascending" : "descending";
        const now = head.getAttribute("aria-sort");
        sortTable(table, column, !now ? first : now === "ascending" ? "descending" : "ascending");
        remember();
      });
    });
  }

  // Plots.
  const layout = (extra) => {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    const merged = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 55, r: 12, t: 28, b: 45 },
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--accent") }, ...extra,
    };
    for (const name of ["xaxis", "yaxis", "yaxis2"]) if (merged[name]) merged[name] = { ...axis, ...merged[name] };
    return merged;
  };
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
  const percent = (share) => (share === 0 ? "0%" : `${+(100 * share).toPrecision(3)}%`);

  const drawErrors = (view) => {
    const first = Object.values(view.formats)[0];
    const total = first.n.reduce((sum, n) => sum + n, 0) || 1;
    const traces = [{
      type: "bar", name: "elements", x: first.e, y: first.n.map((n) => n / total), yaxis: "y2", showlegend: false,
      marker: { color: css("--soft"), opacity: 0.18 }, hovertemplate: "%{y:.2%} of the elements<extra></extra>",
    }];
    for (const [name, curve] of Object.entries(view.formats)) {
      traces.push({
        type: "scatter", mode: "lines+markers", name, x: curve.e, y: curve.r.map((r) => (r ? 100 * r : null)),
        line: { color: colour(name), width: 2 }, marker: { size: 5 }, hovertemplate: `${name}: %{y:.3g}%<extra></extra>`,
      });
    }
    const low = Math.max(first.e[0] ?? -8, (first.e.at(-1) ?? 0) - 30);
    return Plotly.react("error-plot", traces, layout({
      hovermode: "x unified", bargap: 0.1, margin: { l: 55, r: 12, t: 28, b: 80 },
      xaxis: { title: { text: "magnitude |x| of the original" }, tickprefix: "2<sup>", ticksuffix: "</sup>", range: [low - 0.7, (first.e.at(-1) ?? 0) + 0.7], zeroline: false },
      yaxis: { title: { text: "relative RMS error, %" }, type: "log", dtick: 1, overlaying: "y2" },
      yaxis2: { side: "right", showgrid: false, showticklabels: false, zeroline: false, rangemode: "tozero" },
    }), config);
  };

  const drawCodes = (view) => {
    const grid = data.grids[state.format], curve = view.formats[state.format];
    if (!grid || !curve) return Plotly.react("code-plot", [], layout({}), config);
    const total = curve.c.reduce((sum, n) => sum + n, 0) || 1;
    const shown = (value) => (Object.is(value, -0) ? "-0" : +value.toPrecision(6));
    const tick = (value) => (Object.is(value, -0) ? "-0" : String(Math.abs(value) < 1000 ? +value.toPrecision(3) : value));
    const hover = grid.map((value, i) => {
      const real = curve.scale === null || curve.scale === 1 ? "" : ` = ${shown(value * curve.scale)} scaled`;
      return `${shown(value)}${real}<br>${curve.c[i].toLocaleString("en")} elements, ${percent(curve.c[i] / total)}`;
    });
    const ticks = grid.length <= 16 ? grid.map((_, i) => i) : Array.from({ length: 9 }, (_, k) => Math.round((k * (grid.length - 1)) / 8));
    const zero = grid.findIndex((value) => Object.is(value, 0));
    return Plotly.react("code-plot", [{
      type: "bar", x: grid.map((_, i) => i), y: curve.c.map((n) => n / total), text: hover, textposition: "none",
      hovertemplate: "%{text}<extra></extra>", marker: { color: colour(state.format) },
    }], layout({
      bargap: grid.length <= 16 ? 0.15 : 0, showlegend: false,
      xaxis: { title: { text: `code value of ${state.format}, one bar per code` }, tickmode: "array", tickvals: ticks.map((i) => (Math.abs(i - zero) < grid.length / 20 ? zero : i)), ticktext: ticks.map((i) => (Math.abs(i - zero) < grid.length / 20 ? "0" : tick(grid[i]))), showgrid: false, zeroline: false },
      yaxis: { title: { text: "share of the elements" }, tickformat: ".2~%" },
    }), config);
  };

  const draw = () => Promise.all([drawErrors(views.get(state.view)), drawCodes(views.get(state.view))]);

  const choices = document.getElementById("code-formats");
  const press = () => { for (const button of choices.children) button.setAttribute("aria-pressed", button.textContent === state.format); };
  for (const name of data.formats.filter((format) => data.grids[format])) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => { state.format = name; press(); drawCodes(views.get(state.view)); remember(); });
    choices.append(button);
  }

  const select = document.getElementById("view");
  for (const name of views.keys()) if (name) select.append(new Option(name, name));
  const show = (name) => { state.view = views.has(name) ? name : ""; select.value = state.view; return draw(); };
  select.addEventListener("change", () => { show(select.value); remember(); });

  // Rows open on click, Enter or Space.
  const toggle = (row, open) => {
    row.setAttribute("aria-expanded", open);
    row.nextElementSibling.hidden = !open;
  };
  const act = (row) => {
    const open = row.getAttribute("aria-expanded") !== "true";
    toggle(row, open);
    if (open && views.has(row.dataset.name)) show(row.dataset.name);
    remember();
  };
  const body = document.getElementById("tensors").tBodies[0];
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr.tensor");
    if (row && !String(getSelection())) act(row);
  });
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr.tensor");
    if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); act(row); }
  });

  const filter = document.getElementById("filter");
  const applyFilter = () => {
    const needle = filter.value.toLowerCase();
    let count = 0;
    const all = groups(body);
    for (const [row, detail] of all) {
      const hit = row.dataset.name.toLowerCase().includes(needle);
      row.hidden = !hit;
      detail.hidden = !hit || row.getAttribute("aria-expanded") !== "true";
      count += hit;
    }
    document.getElementById("shown").textContent = needle ? `${count} of ${all.length} shown.` : "";
  };
  filter.addEventListener("input", () => { applyFilter(); remember(); });

  // The address keeps the view, so a link leads to it: #tensor=NAME&codes=FORMAT&find=TEXT&tensors=COLUMN,DIRECTION
  const remember = () => {
    const parts = new URLSearchParams();
    if (state.view) parts.set("tensor", state.view);
    if (state.format) parts.set("codes", state.format);
    if (filter.value) parts.set("find", filter.value);
    for (const [table, order] of Object.entries(state.sort)) parts.set(table, order);
    history.replaceState(null, "", `#${parts}`);
  };
  const recall = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (data.grids[parts.get("codes")]) state.format = parts.get("codes");
    filter.value = parts.get("find") ?? "";
    for (const table of document.querySelectorAll("table.sortable")) {
      const [column, direction] = (parts.get(table.id) ?? "").split(",");
      const head = table.tHead.rows[0].cells[column];
      if (head && !head.hasAttribute("data-fixed") && /^(a|de)scending$/.test(direction)) sortTable(table, +column, direction);
    }
    applyFilter();
    press();
    const row = [...body.rows].find((r) => r.dataset.name === parts.get("tensor"));
    if (row) toggle(row, true);
    return show(parts.get("tensor") ?? "");
  };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("hashchange", recall);
  recall().then(() => { root.dataset.ready = "true"; }, record);
})();
