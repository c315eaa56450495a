"use strict";
// What all pages do: draw charts when they come into view, follow light and dark, save and print.
const plancast = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const shown = {}; // which figure of a chart with several
  let library = null; // resolves with Plotly
  let paper = false;

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function axis(given) {
    return {
      gridcolor: colour("--line"), linecolor: colour("--line"), zerolinecolor: colour("--line"),
      ...given,
    };
  }

  // A layout in the colours of the page.
  function themed(layout) {
    const full = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, Roboto, Arial, sans-serif", size: 12.5, color: colour("--ink") },
      hoverlabel: {
        bgcolor: colour("--panel"), bordercolor: colour("--line"), align: "left",
        font: { color: colour("--ink") },
      },
      ...layout,
    };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name)) full[name] = axis(layout[name]);
    }
    return full;
  }

  // No bar of buttons: one of them would send the chart elsewhere.
  const options = { displaylogo: false, displayModeBar: false };

  // A legend puts its names in columns, as wide as the longest; each line takes room of the chart.
  function fitted(place, figure) {
    const layout = { ...figure.layout };
    place.fullHeight = place.fullHeight || layout.height || place.clientHeight;
    layout.height = place.fullHeight;
    layout.width = place.clientWidth;
    if (layout.legend && layout.legend.orientation === "h" && layout.showlegend !== false) {
      const names = figure.data.filter((t) => t.showlegend !== false && t.name).map((t) => t.name);
      const widest = 50 + 7.5 * Math.max(0, ...names.map((name) => name.length));
      const columns = Math.max(1, Math.floor(0.85 * place.clientWidth / widest));
      const lines = Math.ceil(names.length / columns);
      if (lines > 1) {
        layout.height += 20 * lines;
        layout.legend = { ...layout.legend, maxheight: 22 * lines + 10 };
      }
    }
    const signed = figure.data.some((one) => one.type === "bar" && one.text
      && one.x.some((x) => x < 0));
    if (signed && place.clientWidth < 500 && layout.xaxis.range) {
      // What stands left of a short bar keeps clear of the names.
      const [low, high] = layout.xaxis.range;
      layout.xaxis = { ...layout.xaxis, range: [low - 0.3 * (high - low), high] };
    }
    place.style.height = `${layout.height}px`;
    if (layout.dragmode === undefined && matchMedia("(pointer: coarse)").matches) {
      layout.dragmode = false; // a finger scrolls the page
    }
    return layout;
  }

  async function unpacked() {
    const text = document.getElementById("library").textContent;
    const packed = atob(text);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const source = await new Response(stream).blob();
    await new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
    return window.Plotly;
  }

  function plotly() {
    if (library === null) {
      library = unpacked().catch((error) => {
        for (const place of document.querySelectorAll(".chart:not([data-done])")) {
          place.textContent = "This browser cannot unpack the charts; one of 2023 or later can.";
        }
        throw error;
      });
    }
    return library;
  }

  async function paint(place) {
    const Plotly = await plotly();
    const make = place.makeFigure || (() => data.charts[place.id][shown[place.id] || 0]);
    const figure = make();
    const layout = fitted(place, figure);
    // A chart that is there keeps a legend where it had as many lines as before.
    if (place.dataset.done && layout.height !== place.drawnHeight) {
      Plotly.purge(place);
      place.listens = false;
    }
    place.drawnHeight = layout.height;
    await Plotly.react(place, figure.data, themed(layout), options);
    place.dataset.done = "1";
    if (place.afterDrawn) place.afterDrawn(place);
  }

  // What is being drawn is waited for, not drawn twice.
  function draw(place) {
    if (!place.drawing) place.drawing = paint(place);
    return place.drawing;
  }

  function redraw(place) {
    if (place.drawing) place.drawing = place.drawing.then(() => paint(place));
    return place.drawing;
  }

  const places = () => [...document.querySelectorAll(".chart")];

  async function drawAll() {
    for (const place of places()) if (!place.hidden) await draw(place);
  }

  const redrawAll = () => Promise.all(places().map(redraw));

  function theme() {
    const button = document.getElementById("theme");
    const names = ["automatic", "light", "dark"];
    button.addEventListener("click", () => {
      const next = names[(names.indexOf(button.textContent) + 1) % names.length];
      button.textContent = next;
      if (next === "automatic") delete root.dataset.theme;
      else root.dataset.theme = next;
      redrawAll();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  }

  function save(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Charts take the colours and the width of paper before they are printed.
  async function toPaper(on) {
    if (paper === on) return;
    paper = on;
    const before = root.dataset.theme;
    if (on) {
      root.dataset.screen = before || "";
      root.dataset.theme = "light";
      root.classList.add("paper");
      await drawAll();
      await redrawAll();
    } else {
      if (root.dataset.screen) root.dataset.theme = root.dataset.screen;
      else delete root.dataset.theme;
      root.classList.remove("paper");
      await redrawAll();
    }
  }

  function buttons() {
    for (const button of document.querySelectorAll("button.save")) {
      button.addEventListener("click", () => {
        const name = button.dataset.file;
        const text = data.files[name] || (plancast.makers[name] && plancast.makers[name]());
        save(name, text);
      });
    }
    const copy = document.getElementById("copy");
    if (copy) {
      copy.addEventListener("click", async () => {
        const line = document.getElementById("line");
        try {
          await navigator.clipboard.writeText(line.textContent);
          copy.textContent = "copied";
        } catch {
          getSelection().selectAllChildren(line);
          copy.textContent = "selected";
        }
        setTimeout(() => { copy.textContent = "copy"; }, 1500);
      });
    }
    document.getElementById("print").addEventListener("click", async () => {
      await toPaper(true);
      print();
      await toPaper(false);
    });
    addEventListener("beforeprint", () => toPaper(true));
    addEventListener("afterprint", () => toPaper(false));
    for (const menu of document.querySelectorAll("select[data-chart]")) {
      menu.addEventListener("change", () => {
        shown[menu.dataset.chart] = menu.selectedIndex;
        redraw(document.getElementById(menu.dataset.chart));
      });
    }
  }

  // Charts follow the width of the window once it rests.
  function widths() {
    let before = innerWidth;
    let wait = 0;
    addEventListener("resize", () => {
      if (innerWidth === before || paper) return;
      before = innerWidth;
      clearTimeout(wait);
      wait = setTimeout(redrawAll, 150);
    });
  }

  function start() {
    theme();
    buttons();
    widths();
    for (const begin of plancast.starts) begin();
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          watch.unobserve(entry.target);
          draw(entry.target);
        }
      }
    }, { rootMargin: "300px" });
    // The words come first, and are painted before the library is read.
    requestAnimationFrame(() => setTimeout(() => {
      performance.mark("plancast-words");
      for (const place of places()) if (!place.hidden) watch.observe(place);
    }));
  }

  return { data, draw, redraw, drawAll, redrawAll, start, save, colour, toPaper, starts: [], makers: {} };
})();
window.plancast = plancast;
