"use strict";
// The page of a ranking: filters, table, trade-offs, parallel coordinates, two plans compared.
plancast.starts.push(() => {
  const { plans, words } = plancast.data;
  const { strategy, keys, parts, measures } = plans;
  const count = strategy.length;
  const $ = (id) => document.getElementById(id);
  const text = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;");

  function duration(seconds) {
    const size = Math.abs(seconds);
    if (size === 0) return "0 s";
    if (size >= 1) return `${seconds.toFixed(size < 10000 ? 2 : 0)} s`;
    if (size >= 1e-3) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
    return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  }
  const gib = (size) => (size / 2 ** 30).toFixed(1);
  const percent = (share) => `${(share * 100).toFixed(1)} %`;
  const signed = (value, say) => `${value < 0 ? "−" : "+"}${say(Math.abs(value))}`;
  const formats = {
    time: duration, memory: gib, mfu: percent, bubble: percent, exposed: percent,
    rate: (v) => Math.round(v).toLocaleString("en"),
    usd: (v) => `$${Number(v.toPrecision(4))}`, kwh: (v) => `${Number(v.toPrecision(3))}`,
  };
  const best = Math.min(...measures.time);
  const column = (name, label, about) => ({
    label, about, number: true, values: measures[name],
    text: (i) => (measures[name][i] === null ? "" : formats[name](measures[name][i])),
  });
  const places = Array.from({ length: count }, (_, i) => i + 1);
  const columns = [
    { label: "#", number: true, values: places },
    column("time", "iteration"),
    {
      label: "vs best", number: true, values: measures.time,
      text: (i) => (measures.time[i] === best ? "" : `+${percent(measures.time[i] / best - 1)}`),
    },
    column("memory", "GiB", "peak memory of the fullest GPU"),
    column("mfu", "MFU"),
    ...Object.keys(keys).map((key) => ({
      label: key, values: keys[key], number: typeof keys[key][0] === "number", screen: true,
    })),
    column("bubble", "bubble"),
    column("exposed", "comm", "exposed communication"),
    { ...column("rate", words.rate), screen: true },
    ...["usd", "kwh"].filter((name) => measures[name]).map((name) =>
      ({ ...column(name, { usd: "$ a step", kwh: "kWh a step" }[name]), screen: name === "kwh" })),
    { label: "strategy", values: strategy },
  ];

  // --- filters
  const chosen = {};
  const rule = { text: "", time: Infinity, memory: Infinity };
  const filters = $("filters");
  const add = (label, input) => {
    const around = document.createElement("label");
    around.append(`${label} `, input);
    filters.append(around);
    return input;
  };
  for (const key of Object.keys(keys)) {
    const values = [...new Set(keys[key])].sort((a, b) =>
      String(a).localeCompare(String(b), "en", { numeric: true }));
    if (values.length < 2 || values.length > 40) continue;
    const menu = document.createElement("select");
    menu.dataset.key = key;
    menu.append(new Option("any", ""), ...values.map((value) => new Option(value, value)));
    menu.addEventListener("change", () => { chosen[key] = menu.value; refilter(); });
    add(key, menu);
  }
  for (const [name, label, unit] of [["time", "iteration at most, s", 1],
    ["memory", "memory at most, GiB", 2 ** 30]]) {
    const input = document.createElement("input");
    Object.assign(input, { type: "number", min: 0, step: "any", size: 6 });
    input.dataset.most = name;
    input.addEventListener("input", () => {
      rule[name] = input.value === "" ? Infinity : Number(input.value) * unit;
      refilter();
    });
    add(label, input);
  }
  const search = document.createElement("input");
  Object.assign(search, { type: "search", placeholder: "zero=1 recompute=none" });
  search.addEventListener("input", () => { rule.text = search.value.trim(); refilter(); });
  add("words", search);

  function keep(row) {
    for (const key of Object.keys(chosen)) {
      if (chosen[key] !== "" && String(keys[key][row]) !== chosen[key]) return false;
    }
    return measures.time[row] <= rule.time && measures.memory[row] <= rule.memory
      && (rule.text === "" || rule.text.split(/\s+/).every((word) => strategy[row].includes(word)));
  }

  const table = new DataTable($("plans-table"), columns, count, { changed: selectionChanged });
  let wait = 0;
  function refilter() {
    table.filter(keep);
    clearTimeout(wait);
    wait = setTimeout(() => ["tradeoff", "parallel"].forEach((id) => plancast.redraw($(id))), 120);
  }

  // --- time against memory, cost or energy
  const menu = $("against");
  menu.addEventListener("change", () => plancast.redraw($("tradeoff")));
  const names = { memory: "peak memory, GiB", usd: "dollars a step", kwh: "kWh a step" };
  const scaled = (name, i) => (name === "memory" ? measures.memory[i] / 2 ** 30 : measures[name][i]);

  // Plans that no other is better than in both; by time.
  function front(rows, name) {
    const order = [...rows].sort((a, b) => measures.time[a] - measures.time[b]
      || measures[name][a] - measures[name][b]);
    let least = Infinity;
    return order.filter((i) => {
      const value = measures[name][i];
      if (value === null || value >= least) return false;
      least = value;
      return true;
    });
  }

  const say = (i) => `#${i + 1} ${text(strategy[i])}<br>${duration(measures.time[i])}, ${gib(measures.memory[i])} GiB`;
  $("tradeoff").makeFigure = () => {
    const name = menu.value;
    const { rows } = table;
    const points = (which, more) => ({
      type: "scatter", x: which.map((i) => measures.time[i]), y: which.map((i) => scaled(name, i)),
      customdata: which, text: which.map(say), hovertemplate: "%{text}<extra></extra>", ...more,
    });
    const edge = front(rows, name);
    const data = [
      points(rows, { mode: "markers", name: "plans", marker: { size: 5, color: "#3b82c4", opacity: 0.45 } }),
      points(edge, { mode: "lines+markers", name: "Pareto front",
        line: { color: "#e07a5f", shape: "hv", width: 2 }, marker: { size: 8, color: "#e07a5f" } }),
    ];
    if (table.selected.length) {
      data.push(points(table.selected, { mode: "markers+text", name: "selected",
        text: table.selected.map((_, at) => "AB"[at]), hoverinfo: "skip", hovertemplate: null,
        textposition: "top center", marker: { size: 14, color: "rgba(0,0,0,0)",
          line: { width: 3, color: "#d65f8f" } } }));
    }
    const lines = name === "memory" && words.capacity ? [{ type: "line", xref: "paper", x0: 0, x1: 1,
      y0: words.capacity, y1: words.capacity, line: { dash: "dash", width: 1, color: "#c75146" } }] : [];
    return { data, layout: {
      height: 430, margin: { l: 8, r: 12, t: 8, b: 8 }, hovermode: "closest", shapes: lines,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      xaxis: { title: { text: "iteration, s" }, automargin: true },
      yaxis: { title: { text: names[name] }, automargin: true },
    } };
  };
  $("tradeoff").afterDrawn = (place) => {
    if (place.listens) return;
    place.listens = true;
    place.on("plotly_click", (event) => table.toggle(event.points[0].customdata));
  };

  // --- parallel coordinates: every plan a line, the fastest on top
  const ramp = ["#2f6db5", "#4f9ac9", "#7fb98f", "#c9c04f", "#e3a24a", "#d9774f"];
  $("parallel").makeFigure = () => {
    const axes = Object.keys(keys).filter((key) => new Set(keys[key]).size > 1).map((key) => {
      const values = [...new Set(keys[key])].sort((a, b) =>
        String(a).localeCompare(String(b), "en", { numeric: true }));
      const at = new Map(values.map((value, i) => [value, values.length > 1 ? i / (values.length - 1) : 0.5]));
      return { label: key, of: (i) => at.get(keys[key][i]),
        ticks: values.length <= 12 ? values.map((value) => [at.get(value), value])
          : [values[0], values.at(-1)].map((value) => [at.get(value), value]) };
    });
    for (const [name, label] of [["time", "iteration"], ["memory", "GiB"]]) {
      const low = Math.min(...measures[name]);
      const span = Math.max(...measures[name]) - low || 1;
      axes.push({ label, of: (i) => (measures[name][i] - low) / span,
        ticks: [0, 0.5, 1].map((t) => [t, formats[name](low + t * span)]) });
    }
    const { rows } = table;
    const narrow = $("parallel").clientWidth < 640;
    if (narrow) for (const axis of axes) axis.ticks = [axis.ticks[0], axis.ticks.at(-1)];
    const order = [...rows].sort((a, b) => measures.time[b] - measures.time[a]);
    // Plans of one value lie side by side, by time, so that their number shows.
    const beside = new Map(order.map((i, at) => [i, 0.05 * (0.5 - at / Math.max(1, order.length))]));
    const data = [];
    const each = Math.ceil(order.length / ramp.length) || 1;
    const line = (which) => {
      const [x, y] = [[], []];
      for (const i of which) {
        axes.forEach((axis, at) => { x.push(at); y.push(axis.of(i) - (at < axes.length - 2 ? beside.get(i) || 0 : 0)); });
        x.push(null);
        y.push(null);
      }
      return { type: "scatter", mode: "lines", x, y, hoverinfo: "skip" };
    };
    for (let bin = 0; bin < ramp.length; bin += 1) {
      const which = order.slice(bin * each, (bin + 1) * each);
      if (!which.length) continue;
      data.push({ ...line(which), showlegend: false, opacity: rows.length > 500 ? 0.3 : 0.7,
        line: { width: 1, color: ramp[ramp.length - 1 - bin] } });
    }
    data.reverse();
    data.forEach((trace, at) => { trace.zorder = data.length - at; });
    for (const [at, i] of table.selected.entries()) {
      data.push({ ...line([i]), name: "AB"[at], zorder: 99,
        line: { width: 4, color: ["#d65f8f", "#a07cc5"][at] } });
    }
    const notes = axes.flatMap((axis, at) => axis.ticks.map(([y, value]) => ({
      x: at, y, text: text(value), showarrow: false, xanchor: at ? "right" : "left",
      xshift: at ? -5 : 5, font: { size: 11 }, bgcolor: plancast.colour("--ground"), opacity: 0.85,
    })));
    return { data, layout: {
      height: 420, margin: { l: 20, r: 40, t: 8, b: narrow ? 70 : 30 }, annotations: notes, hovermode: false,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, dragmode: false,
      xaxis: { tickmode: "array", tickvals: axes.map((_, at) => at), fixedrange: true,
        ticktext: axes.map((axis) => text(axis.label)), tickangle: narrow ? -60 : 0, range: [-0.15, axes.length - 0.85] },
      yaxis: { visible: false, range: [-0.06, 1.06], fixedrange: true },
    } };
  };

  // --- two plans
  function selectionChanged(selected) {
    ["tradeoff", "parallel"].forEach((id) => plancast.redraw($(id)));
    const place = $("difference");
    const ask = $("compare-line");
    ask.hidden = selected.length < 2;
    if (selected.length < 2) {
      place.textContent = "Select two plans in the table or by a click on their points.";
      $("difference-chart").hidden = true;
      return;
    }
    const [a, b] = selected;
    const delta = measures.time[b] - measures.time[a];
    const changes = Object.keys(parts).map((part) => [part, parts[part][b] - parts[part][a]])
      .sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]));
    const causes = changes.filter(([, value]) => Math.abs(value) >= 0.1 * Math.abs(delta)
      && Math.abs(value) > 0).slice(0, 3);
    const lines = [];
    const share = delta / measures.time[a];
    lines.push(Math.abs(share) < 5e-4 ? "B is as fast as A."
      : `B is ${duration(Math.abs(delta))} ${delta > 0 ? "slower" : "faster"} than A (${signed(share, percent)}): `
        + `${causes.map(([part, value]) => `${words.parts[part]} ${signed(value, duration)}`).join(", ")}.`);
    const more = measures.memory[b] - measures.memory[a];
    lines.push(`It needs ${gib(Math.abs(more))} GiB ${more > 0 ? "more" : "less"}: `
      + `${gib(measures.memory[a])} in A, ${gib(measures.memory[b])} in B.`);
    const unlike = Object.keys(keys).filter((key) => keys[key][a] !== keys[key][b])
      .map((key) => `${key} ${keys[key][a]} → ${keys[key][b]}`);
    lines.push(`What differs: ${unlike.join(", ") || "nothing that is named here"}.`);
    lines.push(`A #${a + 1}: ${strategy[a]}`, `B #${b + 1}: ${strategy[b]}`);
    place.replaceChildren(...lines.map((line) => {
      const said = document.createElement("p");
      said.textContent = line;
      return said;
    }));
    const quoted = (word) => `'${word.replace(/'/g, "'\\''")}'`;
    ask.textContent = `${words.compare} -s ${quoted(strategy[a])} -s ${quoted(strategy[b])}`;
    const chart = $("difference-chart");
    chart.hidden = false;
    chart.makeFigure = () => {
      const shown = changes.filter(([, value]) => Math.abs(value) > 1e-5 * measures.time[a]).reverse();
      const edges = [0, ...shown.map(([, value]) => value)];
      const [low, high] = [Math.min(...edges), Math.max(...edges)];
      const room = 0.13 * (high - low);
      return { data: [{
        type: "bar", orientation: "h", y: shown.map(([part]) => words.parts[part]),
        x: shown.map(([, value]) => value), text: shown.map(([, v]) => signed(v, duration)),
        textposition: "auto", hoverinfo: "skip",
        marker: { color: shown.map(([, value]) => (value > 0 ? "#e07a5f" : "#6fb38a")) },
      }], layout: { height: 90 + 28 * shown.length, margin: { l: 8, r: 12, t: 8, b: 8 }, showlegend: false,
        xaxis: { title: { text: "seconds of B beyond A" }, automargin: true, zeroline: true,
          range: [low - (low < 0 ? room : 0), high + room] },
        yaxis: { automargin: true } } };
    };
    delete chart.fullHeight;
    chart.style.height = "300px";
    if (chart.drawing) plancast.redraw(chart);
    else plancast.draw(chart);
  }
  selectionChanged([]);

  // --- what can be saved
  const named = {
    rank: places, strategy, ...keys,
    iteration_time_s: measures.time, peak_memory_bytes: measures.memory, mfu: measures.mfu,
    [words.rateField]: measures.rate, usd_per_iteration: measures.usd, kwh_per_iteration: measures.kwh,
    ...Object.fromEntries(Object.keys(parts).map((part) => [`${part}_s`, parts[part]])),
  };
  const fields = Object.keys(named).filter((name) => named[name]);
  plancast.makers["plans.json"] = () => JSON.stringify(
    strategy.map((_, i) => Object.fromEntries(fields.map((name) => [name, named[name][i]]))), null, 1);
  plancast.makers["plans.csv"] = () => {
    const cell = (value) => {
      const word = value === null ? "" : String(value);
      return /[",\n]/.test(word) ? `"${word.replace(/"/g, '""')}"` : word;
    };
    return `${fields.join(",")}\n${strategy.map((_, i) =>
      fields.map((name) => cell(named[name][i])).join(",")).join("\n")}\n`;
  };
  plancast.table = table;
  plancast.front = front;
});
