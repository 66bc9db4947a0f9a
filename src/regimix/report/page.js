"use strict";
// The page reads well without this file. With it: another feature in the scatter plot, what a row
// is when it is pointed at, regimes and rows to follow through all pictures, the rows as a table to
// sort, search and save, and dark or light.
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const data = JSON.parse(byId("data").textContent);
  root.classList.add("js");

  // --- words ------------------------------------------------------------------------------------
  // As words.py writes numbers: digits are grouped from 10,000 on.
  const grouped = (text) => (text.length < 5 ? text : text.replace(/\B(?=(\d{3})+(?!\d))/g, ","));
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

  const fixed = (size, decimals) => {
    const [whole, fraction] = size.toFixed(decimals).split(".");
    return fraction ? `${grouped(whole)}.${fraction}` : grouped(whole);
  };

  function number(value, digits = 4) {
    if (value === null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size === 0) return "0";
    const plain = size >= 1e-4 && size < 1e7;
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return (value < 0 ? "-" : "") + (plain ? trimmed(fixed(size, decimals)) : scientific(size, digits));
  }

  function scientific(size, digits) {
    const [mantissa, exponent] = size.toExponential(digits - 1).split("e");
    return `${trimmed(mantissa)}e${Number(exponent)}`;
  }

  // --- dark and light ---------------------------------------------------------------------------
  const theme = byId("theme");
  const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  wantsDark.addEventListener("change", nameTheme);
  nameTheme();

  // --- what is chosen ---------------------------------------------------------------------------
  // Regimes (-1: the outliers) and single rows; nothing chosen means everything.
  const chosen = { labels: new Set(), rows: new Set() }, watchers = [];
  const cloud = data.scatter;
  const labelOf = (i) => (i < cloud.inside ? cloud.nearest[i] : -1);
  const isChosen = (i) => (!chosen.labels.size || chosen.labels.has(labelOf(i))) && (!chosen.rows.size || chosen.rows.has(i));
  const counted = (n, noun) => `${grouped(String(n))} ${noun}${n === 1 ? "" : "s"}`;

  function startChoice() {
    const bar = byId("chosen"), [said, all] = bar.children;
    const marked = [...document.querySelectorAll("[data-regime]")], buttons = [];
    const labelAt = (node) => Number(node.closest("[data-regime]").dataset.regime);

    function flip(label) {
      if (!chosen.labels.delete(label)) chosen.labels.add(label);
      chosen.rows.clear();
      changed();
    }

    for (const node of document.querySelectorAll("[data-pick]")) {
      if (node.closest("svg")) { node.addEventListener("click", () => flip(labelAt(node))); continue; }
      const button = document.createElement("button");
      button.type = "button";
      button.className = "pick";
      button.setAttribute("aria-pressed", "false");
      button.append(...node.childNodes);
      button.addEventListener("click", () => flip(labelAt(node)));
      node.append(button);
      buttons.push(button);
    }

    function words() {
      const names = [...chosen.labels].sort((a, b) => a - b).map((label) => (label < 0 ? "outliers" : `regime ${label}`));
      const n = cloud ? Array.from(cloud.keys, (_, i) => i).filter(isChosen).length : 0;
      const rows = cloud ? counted(n, chosen.rows.size ? "chosen row" : "row") : "";
      return [names.join(", "), rows && `${rows} on this page`].filter(Boolean).join(": ");
    }

    watchers.push(() => {
      const some = chosen.labels.size > 0;
      for (const node of marked) {
        const on = node.dataset.regime.split(" ").some((label) => chosen.labels.has(Number(label)));
        node.classList.toggle("dim", some && !on);
        if (node.matches("details") && on) node.open = true;
      }
      for (const button of buttons) button.setAttribute("aria-pressed", String(chosen.labels.has(labelAt(button))));
      bar.hidden = !some && !chosen.rows.size;
      said.textContent = bar.hidden ? "" : `Shown: ${words()}`;
      root.classList.toggle("choosing", !bar.hidden);
    });
    all.addEventListener("click", forget);

    // Paper has everything: what is folded is opened, and nothing is left out.
    let before = null;
    addEventListener("beforeprint", () => {
      before = { labels: [...chosen.labels], rows: [...chosen.rows], folded: [...document.querySelectorAll("details:not([open])")] };
      before.folded.forEach((node) => { node.open = true; });
      forget();
    });
    addEventListener("afterprint", () => {
      if (!before) return;
      before.folded.forEach((node) => { node.open = false; });
      before.labels.forEach((label) => chosen.labels.add(label));
      before.rows.forEach((row) => chosen.rows.add(row));
      before = null;
      changed();
    });
  }

  const changed = () => watchers.forEach((watcher) => watcher());
  function forget() {
    chosen.labels.clear();
    chosen.rows.clear();
    changed();
  }

  // --- scatter plot -----------------------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  const EDGE = { top: 30, right: 14, bottom: 46, left: 44 };
  const ARROWS = { up: "m0-5l4 7h-8z", down: "m0 5l4-7h-8z", left: "m-5 0l7-4v8z", right: "m5 0l-7-4v8z" };
  const COLOURS = 8, BROAD = 2.5;

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const short = (value) => { const text = value.toFixed(1).replace(/\.0$/, ""); return text === "-0" ? "0" : text; };

  function scale(low, high, start, end) {
    const span = high - low || 1;
    return (value) => start + Math.min(1, Math.max(0, (value - low) / span)) * (end - start);
  }

  function ticks(low, high, most, values = []) {
    const span = high - low;
    if (values.length > 1 && Math.min(...values.slice(1).map((value, i) => value - values[i])) * most >= span) return values;
    if (!(span > 1e-9 * Math.max(Math.abs(low), Math.abs(high)))) return [low];
    const power = 10 ** Math.floor(Math.log10(span / most));
    const sizes = [0.5, 1, 2, 5, 10].map((size) => size * power);
    const fits = sizes.findIndex((size, i) => i && size * most >= span * (1 - 1e-9));
    const at = (step) => {
      const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
      return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
    };
    // One tick alone, as zero of a range around it, would not show the scale.
    const found = at(sizes[fits]);
    return found.length > 1 ? found : at(sizes[fits - 1]);
  }

  function tickLabels(values) {
    const step = values.length > 1 ? values[1] - values[0] : Math.abs(values[0]) || 1;
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    if (decimals > 5 || Math.max(...values.map(Math.abs)) >= 1e7) {
      const size = Math.max(...values.map(Math.abs)) || 1;
      const apart = Math.floor(Math.log10(size)) - Math.floor(Math.log10(step));
      const digits = 1 + Math.min(Math.max(2, apart), 12);
      return values.map((value) => (value ? (value < 0 ? "-" : "") + scientific(Math.abs(value), digits) : "0"));
    }
    return values.map((value) => (value < -step / 2 ? "-" : "") + fixed(Math.abs(value), decimals));
  }

  function grid(x, y, names, width, height, values) {
    const bottom = height - EDGE.bottom, right = width - EDGE.right;
    const rows = ticks(...y, Math.max(3, Math.floor(height / 60)));
    const rowLabels = tickLabels(rows);
    const left = Math.max(EDGE.left, 18 + 7.2 * Math.max(...rowLabels.map((t) => t.length)));
    const columns = ticks(...x, Math.max(4, Math.floor((width - left) / 80)), values);
    const across = scale(...x, left, right), up = scale(...y, bottom, EDGE.top);
    const group = element("g", { class: "grid" });
    group.append(element("text", { class: "name", x: 2, y: 14 }, names[1]));
    rows.forEach((value, i) => {
      const place = short(up(value));
      group.append(element("line", { x1: short(left), x2: short(right), y1: place, y2: place }));
      group.append(element("text", { x: short(left - 8), y: short(up(value) + 4), "text-anchor": "end" }, rowLabels[i]));
    });
    tickLabels(columns).forEach((label, i) => {
      const place = short(across(columns[i]));
      group.append(element("line", { x1: place, x2: place, y1: bottom, y2: bottom + 5 }));
      group.append(element("text", { x: place, y: bottom + 19, "text-anchor": "middle" }, label));
    });
    group.append(element("text", { class: "name", x: right, y: bottom + 39, "text-anchor": "end" }, names[0]));
    return { across, up, group, perUnit: (bottom - EDGE.top) / (y[1] - y[0]) };
  }

  function startScatter() {
    const plot = byId("plot"), tip = byId("tip"), said = byId("said"), ring = element("circle", { class: "ring", r: 8 });
    const chooser = byId("feature"), adjust = byId("adjust");
    const count = cloud.drawn, frame = element("rect", { class: "brush", visibility: "hidden" });
    let places = [], current = -1, from = null;

    function draw() {
      const feature = cloud.features[chooser ? Number(chooser.value) : 0];
      const adjusted = !adjust || adjust.checked;
      const width = Math.max(280, plot.clientWidth), height = Math.round(Math.min(440, Math.max(300, width * 0.62)));
      const y = adjusted
        ? feature.x.slice(0, count).map((x, i) => feature.lines[cloud.nearest[i]][0] + feature.lines[cloud.nearest[i]][1] * x + cloud.residual[i])
        : cloud.y;
      const yFrame = adjusted ? feature.adjusted : cloud.frame;
      const { across, up, group, perUnit } = grid(feature.frame, yFrame, [feature.name, cloud.target], width, height, feature.values);
      places = Array.from({ length: count }, (_, i) => [across(feature.x[i]), up(y[i])]);
      const svg = plot.querySelector("svg");
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.querySelector("title").textContent = `${cloud.target} against ${feature.name}, with each regime's line`;
      svg.querySelector(".grid").replaceWith(group);
      svg.querySelector(".points").replaceChildren(...points(feature, y, yFrame));
      svg.querySelector(".lines").replaceChildren(...lines(feature, yFrame, across, up, perUnit));
      svg.append(frame, ring);
      leave();
    }

    function points(feature, y, yFrame) {
      // Rows that are not chosen stay behind the others, as a shadow; arrows have a label of their own.
      const paths = new Map();
      for (let i = 0; i < count; i++) {
        const label = labelOf(i), [px, py] = places[i], x = feature.x[i];
        const side = y[i] > yFrame[1] ? "up" : y[i] < yFrame[0] ? "down" : x > feature.frame[1] ? "right" : x < feature.frame[0] ? "left" : "";
        const key = (isChosen(i) ? 1e6 : 0) + (side ? 1e5 : label);
        paths.set(key, `${paths.get(key) || ""}M${short(px)} ${short(py)}${side ? ARROWS[side] : cloud.shapes[label + 1]}`);
      }
      return [...paths].sort((a, b) => a[0] - b[0]).map(([key, d]) => {
        const on = key > 5e5, label = key - (on ? 1e6 : 0);
        const dot = label < 1e5 && cloud.shapes[label + 1] === "h0";
        const kind = label < 0 || label >= 1e5 ? "mark out" : `mark r${label % COLOURS}${dot ? " dot" : ""}`;
        const attributes = { d, class: on ? kind : `${kind} shadow` };
        if (dot) attributes["stroke-width"] = short(2 * cloud.radius);
        return element("path", attributes);
      });
    }

    // A line is cut off where it leaves the frame.
    function within([from, to], base, slope, [left, right], [bottom, top]) {
      if (!slope && (base < bottom || base > top)) return [1, 0];
      const [a, b] = slope ? [(bottom - base) / slope, (top - base) / slope] : [from, to];
      return [Math.max(from, left, Math.min(a, b)), Math.min(to, right, Math.max(a, b))];
    }

    function lines(feature, yFrame, across, up, perUnit) {
      const shown = (j) => !chosen.labels.size || chosen.labels.has(j);
      return feature.lines.map((_, j) => j).sort((a, b) => shown(a) - shown(b)).flatMap((j) => {
        const [base, slope] = feature.lines[j], reach = feature.reach[j];
        if (!reach) return [];
        const [a, b] = within(reach, base, slope, feature.frame, yFrame);
        if (a > b) return [];
        const ends = { x1: short(across(a)), y1: short(up(base + slope * a)), x2: short(across(b)), y2: short(up(base + slope * b)) };
        const line = element("line", { class: `line r${j % COLOURS}${shown(j) ? "" : " shadow"}`, ...ends });
        line.append(element("title", {}, `Regime ${j}`));
        const broad = shown(j) && cloud.scales[j] * perUnit > BROAD * cloud.radius;
        return broad ? [element("line", { class: "halo", ...ends }), line] : [line];
      });
    }

    function tell(i) {
      const feature = cloud.features[chooser ? Number(chooser.value) : 0];
      const label = labelOf(i), regime = cloud.nearest[i], off = cloud.residual[i];
      const what = label < 0 ? `outlier, nearest to regime ${regime}` : `regime ${regime}`;
      const far = cloud.scales[regime] > 0 ? ` (${number(Math.abs(off) / cloud.scales[regime], 2)} × noise)` : "";
      return [
        `Row ${cloud.keys[i]}: ${what}`,
        `${feature.name}: ${number(feature.x[i])}`,
        `${cloud.target}: ${number(cloud.y[i])}`,
        `predicted ${number(cloud.y[i] - off)}, residual ${number(off)}${far}`,
        ...(chosen.rows.has(i) ? ["chosen"] : []),
      ];
    }

    function show(i, aloud) {
      current = i;
      const [x, y] = places[i], words = tell(i);
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
      ring.classList.add("on");
      tip.replaceChildren(...words.map((text, k) => {
        const line = document.createElement(k ? "div" : "strong");
        line.textContent = text;
        return line;
      }));
      tip.hidden = false;
      const shrink = plot.clientWidth / Math.max(280, plot.clientWidth);
      const left = x * shrink > plot.clientWidth / 2 ? x * shrink - tip.offsetWidth - 14 : x * shrink + 14;
      tip.style.left = `${Math.max(0, Math.min(left, plot.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${Math.max(0, y * shrink - tip.offsetHeight - 10)}px`;
      if (aloud) said.textContent = words.join(". ");
    }

    function leave() {
      current = -1;
      tip.hidden = true;
      ring.classList.remove("on");
    }

    function nearest(event) {
      const box = plot.getBoundingClientRect();
      const x = event.clientX - box.left, y = event.clientY - box.top;
      let best = -1, least = 24 ** 2;
      for (let i = 0; i < count; i++) {
        const far = (places[i][0] - x) ** 2 + (places[i][1] - y) ** 2;
        if (far < least && isChosen(i)) { best = i; least = far; }
      }
      return best;
    }

    function walk(step, outliersOnly) {
      const order = Array.from({ length: count }, (_, i) => i)
        .filter((i) => isChosen(i) && (!outliersOnly || i >= cloud.inside))
        .sort((a, b) => places[a][0] - places[b][0] || a - b);
      if (!order.length) return;
      const at = order.indexOf(current);
      if (at < 0) show(order[step > 0 ? 0 : order.length - 1], true);
      else show(order[(at + step + order.length) % order.length], true);
    }

    function choose(rows) {
      chosen.rows = new Set(rows);
      changed();
    }

    const KEYS = {
      ArrowRight: () => walk(1, false), ArrowLeft: () => walk(-1, false),
      ArrowDown: () => walk(1, true), ArrowUp: () => walk(-1, true),
      Enter: () => { const i = current; if (i >= 0) { choose(chosen.rows.has(i) ? [] : [i]); show(i, true); } },
      Escape: () => (current < 0 ? forget() : leave()),
    };
    plot.tabIndex = 0;
    plot.addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      KEYS[event.key]();
    });

    // A frame is dragged with a mouse or a pen; a finger scrolls the page, and a tap shows a row.
    const at = (event) => { const box = plot.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const framed = (event) => { const [x, y] = at(event); return [Math.min(x, from[0]), Math.min(y, from[1]), Math.max(x, from[0]), Math.max(y, from[1])]; };
    const isFrame = ([x1, y1, x2, y2]) => x2 - x1 > 4 || y2 - y1 > 4;

    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") { const i = nearest(event); if (i >= 0) show(i, false); }
      if (event.pointerType === "touch" || event.button !== 0) return;
      from = at(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (from && isFrame(framed(event))) {
        const [x, y, x2, y2] = framed(event);
        for (const [key, value] of Object.entries({ x, y, width: x2 - x, height: y2 - y, visibility: "visible" })) frame.setAttribute(key, value);
        leave();
        return;
      }
      const i = nearest(event);
      if (i < 0) leave(); else if (i !== current) show(i, false);
    });
    plot.addEventListener("pointerup", (event) => {
      if (!from) return;
      const [x1, y1, x2, y2] = framed(event), dragged = isFrame([x1, y1, x2, y2]);
      from = null;
      frame.setAttribute("visibility", "hidden");
      const inFrame = ([x, y]) => x >= x1 && x <= x2 && y >= y1 && y <= y2;
      if (dragged) choose(places.flatMap((place, i) => (inFrame(place) && (!chosen.labels.size || chosen.labels.has(labelOf(i))) ? [i] : [])));
      else if (chosen.rows.size) choose([]);
    });
    plot.addEventListener("pointercancel", () => { from = null; frame.setAttribute("visibility", "hidden"); });
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    chooser?.addEventListener("change", draw);
    adjust?.addEventListener("change", draw);
    watchers.push(draw);
    let drawnAt = 0;
    new ResizeObserver(() => {
      if (Math.abs(plot.clientWidth - drawnAt) < 1) return;
      drawnAt = plot.clientWidth;
      draw();
    }).observe(plot);
    return (i) => {
      plot.scrollIntoView({ block: "center" });
      plot.focus({ preventScroll: true });
      show(i, true);
    };
  }

  // --- residuals --------------------------------------------------------------------------------
  // Chosen rows are marked in the pictures that Python drew.
  function startPanels() {
    const panels = [...document.querySelectorAll("svg[data-against], svg[data-quantiles]")].map((svg) => {
      const ends = (svg.dataset.against || svg.dataset.quantiles).split(" ").map(Number), marks = svg.querySelector(".mark");
      const places = [...marks.getAttribute("d").matchAll(/M(-?[\d.]+) (-?[\d.]+)/g)].map((found) => [Number(found[1]), Number(found[2])]);
      const over = element("path", { class: marks.getAttribute("class"), "stroke-width": 7 });
      svg.append(over);
      const label = Number(svg.closest("[data-regime]").dataset.regime);
      return { svg, over, places, label, quantiles: "quantiles" in svg.dataset, across: scale(...ends.slice(0, 4)), up: scale(...ends.slice(4)) };
    });

    // The quantile of a residual, between those of its neighbours in the picture.
    function between(places, y) {
      const next = places.findIndex((place) => place[1] <= y);
      if (next <= 0) return places[next < 0 ? places.length - 1 : 0][0];
      const [[x1, y1], [x2, y2]] = [places[next - 1], places[next]];
      return y1 === y2 ? x2 : x1 + (x2 - x1) * (y1 - y) / (y1 - y2);
    }

    watchers.push(() => {
      for (const { svg, over, places, label, quantiles, across, up } of panels) {
        const rows = [...chosen.rows].filter((i) => labelOf(i) === label);
        svg.classList.toggle("some", chosen.rows.size > 0);
        over.setAttribute("d", rows.map((i) => {
          const y = up(cloud.residual[i] / cloud.scales[label]);
          const x = quantiles ? between(places, y) : across(cloud.y[i] - cloud.residual[i]);
          return `M${short(x)} ${short(y)}${cloud.shapes[label + 1]}`;
        }).join(""));
      }
    });
  }

  // --- rows -------------------------------------------------------------------------------------
  const STEP = 200, BESIDE = 4;

  // As words.py writes a column: the same number of decimals, if the numbers are of like size.
  function aligner(values, digits) {
    const sizes = values.filter((v) => Number.isFinite(v) && v).map(Math.abs).sort((a, b) => a - b);
    const typical = sizes[sizes.length >> 1];
    if (!sizes.length || sizes[sizes.length - 1] >= 1e7 || typical < 1e-4) return (v) => number(v, digits);
    let places = Math.max(0, digits - 1 - Math.floor(Math.log10(typical)));
    while (places && sizes.every((v) => Math.abs(Number(v.toFixed(places - 1)) - v) <= 1e-12 * v)) places -= 1;
    const zero = (0).toFixed(places);
    return (v) => {
      if (!Number.isFinite(v)) return number(v);
      const text = fixed(Math.abs(v), places);
      return v < 0 && text !== zero ? `-${text}` : text;
    };
  }

  function probability(p) {
    if (p === null) return "–";
    if (p < 0.0005) return "<0.001";
    return p >= 0.9995 && p < 1 ? ">0.999" : p.toFixed(3);
  }

  // A spreadsheet would run text that begins like this as a formula; a number is no danger.
  function safe(cell) {
    if (cell === null || cell === undefined) return "";
    let text = String(cell);
    if (typeof cell === "string" && /^[\s=+\-@|%]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function save(name, lines) {
    const text = lines.map((line) => line.map(safe).join(",")).join("\r\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`\ufeff${text}\r\n`], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function startRows(showInPlot) {
    const table = byId("row-table"), body = table.tBodies[0], search = byId("search"), found = byId("found"), more = byId("more");
    const headers = [...table.tHead.rows[0].cells], names = headers.map((header) => header.textContent);
    const all = cloud.keys.map((_, i) => i), texts = cloud.keys.map((key) => String(key).toLowerCase());
    const collator = new Intl.Collator(undefined, { numeric: true });
    const six = (value) => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null);
    const known = (array, i) => (i < array.length ? array[i] : null);
    const noise = (i) => cloud.scales[cloud.nearest[i]];
    const values = [
      (i) => cloud.keys[i], (i) => cloud.y[i], (i) => (labelOf(i) < 0 ? cloud.nearest[i] - 1e6 : cloud.nearest[i]),
      (i) => six(cloud.y[i] - cloud.residual[i]), (i) => cloud.residual[i],
      (i) => (noise(i) > 0 ? six(Math.abs(cloud.residual[i]) / noise(i)) : cloud.residual[i] ? null : 0), (i) => cloud.outlying[i],
      ...cloud.features.slice(0, BESIDE).map((feature) => (i) => known(feature.x, i)),
    ];
    const writers = values.map((value, column) => {
      if (column === 0) return (i) => String(cloud.keys[i]);
      if (column === 2) return (i) => `${labelOf(i) < 0 ? "outlier, near " : ""}${cloud.nearest[i]}`;
      if (column === 6) return (i) => probability(value(i));
      const write = aligner(all.map(value), column === 5 ? 3 : 4);
      return (i) => (column === 5 && value(i) === null ? "inf" : write(value(i)));
    });
    let by = 5, down = true, listed = [], shown = STEP;  // the farthest from their regime first

    function compare(a, b, column = by) {
      const [p, q] = [a, b].map(values[column]);
      if (typeof p === "string") return collator.compare(p, q);
      const [x, y] = [p, q].map((v) => (v === null ? Infinity : v));
      return x === y ? 0 : x - y;
    }

    function list() {
      const word = search.value.trim().toLowerCase();
      listed = all.filter((i) => isChosen(i) && texts[i].includes(word))
        // The row that is looked for comes first, then those that contain its name.
        .sort((a, b) => (texts[b] === word) - (texts[a] === word) || (down ? -compare(a, b) : compare(a, b)) || a - b);
      shown = STEP;
      const n = listed.length, off = word && texts[listed[0]] !== word ? elsewhere(word) : "";
      found.textContent = `${off}${grouped(String(n))} of ${grouped(String(all.length))} rows${n > shown ? `, the first ${shown} are shown` : ""}`;
      body.replaceChildren(...listed.slice(0, shown).map(row));
      const first = body.querySelector("button");
      if (first) first.tabIndex = 0;
      more.hidden = n <= shown;
    }

    // One stop of the tab key for the whole table; arrow keys go from row to row.
    body.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const buttons = [...body.querySelectorAll("button")], next = buttons[buttons.indexOf(event.target) + step];
      event.preventDefault();
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });

    function row(i) {
      const made = document.createElement("tr");
      writers.forEach((write, column) => {
        const cell = made.insertCell(), text = write(i);
        if (column) { cell.textContent = text; return; }
        if (text.length > 32) cell.className = "long";
        if (i >= cloud.drawn) { cell.textContent = text; return; }
        const button = document.createElement("button");
        button.type = "button";
        button.tabIndex = -1;
        button.title = "Show this row in the picture";
        button.textContent = text;
        button.addEventListener("click", () => showInPlot(i));
        cell.append(button);
      });
      return made;
    }

    headers.forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => {
        down = header.getAttribute("aria-sort") !== "descending";
        by = column;
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", down ? "descending" : "ascending");
        list();
      });
      header.append(button);
    });
    search.addEventListener("input", list);
    more.addEventListener("click", () => {
      body.append(...listed.slice(shown, shown + STEP).map(row));
      shown += STEP;
      more.hidden = listed.length <= shown;
      found.textContent = `${grouped(String(Math.min(shown, listed.length)))} of ${grouped(String(listed.length))} rows are shown`;
    });
    watchers.push(list);

    const columns = [names[0], names[1], "Regime", "Nearest regime", ...names.slice(3, 7), ...cloud.features.map((feature) => feature.name)];
    const line = (i) => [
      ...values.slice(0, 2).map((value) => value(i)), labelOf(i), cloud.nearest[i], ...values.slice(3, 7).map((value) => value(i)),
      ...cloud.features.map((feature) => known(feature.x, i)),
    ];
    byId("export").addEventListener("click", () => save("rows.csv", [columns, ...listed.map(line)]));
    byId("flagged")?.addEventListener("click", () => save("outliers.csv", [columns, ...all.slice(cloud.inside).sort((a, b) => compare(b, a, 5)).map(line)]));
    const held = data.labels, labels = byId("labels");
    const rowNames = held && (held.keys || (held.runs ? unpacked(held.runs) : Array.from(held.letters, (_, i) => i)));
    const labelled = (i) => held.letters.charCodeAt(i) - 66;
    labels.hidden = !held;
    if (held && !held.complete) labels.textContent = "labels of the excerpt";
    labels.addEventListener("click", () => save("labels.csv", [["row", "regime"], ...rowNames.map((name, i) => [name, labelled(i)])]));

    // Labels are there of rows that the pictures leave out.
    function elsewhere(word) {
      const i = held && !("none" in held) ? rowNames.findIndex((name) => String(name).toLowerCase() === word) : -1;
      if (i < 0) return "";
      return `Row ${rowNames[i]} is not among these rows: it is ${labelled(i) < 0 ? "an outlier" : `of regime ${labelled(i)}`}. `;
    }
    list();
  }

  // Gaps and how many numbers follow one another, as rows.py packs them.
  function unpacked(runs) {
    const numbers = [];
    for (let k = 0, start = 0; k < runs.length; k += 2) {
      start += runs[k];
      for (let i = 0; i < runs[k + 1]; i++) numbers.push(start + i);
    }
    return numbers;
  }

  startChoice();
  if (cloud) {
    const showInPlot = startScatter();
    startPanels();
    startRows(showInPlot);
  }
})();
