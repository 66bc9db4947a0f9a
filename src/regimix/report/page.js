"use strict";
// The page reads well without this file. With it: another feature in the scatter plot, what a row
// is when it is pointed at, sorting, searching and exporting the outliers, and dark or light.
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

  function ticks(low, high, most) {
    const span = high - low;
    if (!(span > 1e-9 * Math.max(Math.abs(low), Math.abs(high)))) return [low];
    const power = 10 ** Math.floor(Math.log10(span / most));
    const step = [1, 2, 5, 10].find((size) => size * power * most >= span * (1 - 1e-9)) * power;
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
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

  function grid(x, y, names, width, height) {
    const bottom = height - EDGE.bottom, right = width - EDGE.right;
    const rows = ticks(...y, Math.max(3, Math.floor(height / 60)));
    const rowLabels = tickLabels(rows);
    const left = Math.max(EDGE.left, 18 + 7.2 * Math.max(...rowLabels.map((t) => t.length)));
    const columns = ticks(...x, Math.max(3, Math.floor((width - left) / 80)));
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

  function startScatter(cloud) {
    const plot = byId("plot"), tip = byId("tip"), said = byId("said"), ring = element("circle", { class: "ring", r: 8 });
    const chooser = byId("feature"), adjust = byId("adjust");
    const count = cloud.y.length, hidden = new Set();
    const labelOf = (i) => (i < cloud.inside ? cloud.nearest[i] : -1);
    let places = [], current = -1;

    function draw() {
      const feature = cloud.features[chooser ? Number(chooser.value) : 0];
      const adjusted = !adjust || adjust.checked;
      const width = Math.max(280, plot.clientWidth), height = Math.round(Math.min(440, Math.max(300, width * 0.62)));
      const y = adjusted
        ? feature.x.map((x, i) => feature.lines[cloud.nearest[i]][0] + feature.lines[cloud.nearest[i]][1] * x + cloud.residual[i])
        : cloud.y;
      const yFrame = adjusted ? feature.adjusted : cloud.frame;
      const { across, up, group, perUnit } = grid(feature.frame, yFrame, [feature.name, cloud.target], width, height);
      places = feature.x.map((x, i) => [across(x), up(y[i])]);
      const svg = plot.querySelector("svg");
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.querySelector("title").textContent = `${cloud.target} against ${feature.name}, with each regime's line`;
      svg.querySelector(".grid").replaceWith(group);
      svg.querySelector(".points").replaceChildren(...points(feature, y, yFrame));
      svg.querySelector(".lines").replaceChildren(...lines(feature, across, up, perUnit));
      svg.append(ring);
      leave();
    }

    function points(feature, y, yFrame) {
      const paths = new Map(), arrows = [];
      for (let i = 0; i < count; i++) {
        const label = labelOf(i), [px, py] = places[i], x = feature.x[i];
        if (hidden.has(label)) continue;
        const start = `M${short(px)} ${short(py)}`;
        const side = y[i] > yFrame[1] ? "up" : y[i] < yFrame[0] ? "down" : x > feature.frame[1] ? "right" : x < feature.frame[0] ? "left" : "";
        if (side) arrows.push(start + ARROWS[side]);
        else paths.set(label, (paths.get(label) || "") + start + cloud.shapes[label + 1]);
      }
      const made = [...paths].sort((a, b) => a[0] - b[0]).map(([label, d]) => {
        const dot = cloud.shapes[label + 1] === "h0";
        const attributes = { d, class: label < 0 ? "mark out" : `mark r${label % COLOURS}${dot ? " dot" : ""}` };
        if (dot) attributes["stroke-width"] = short(2 * cloud.radius);
        return element("path", attributes);
      });
      if (arrows.length) made.push(element("path", { d: arrows.join(""), class: "mark out" }));
      return made;
    }

    function lines(feature, across, up, perUnit) {
      return feature.lines.flatMap(([base, slope], j) => {
        const reach = feature.reach[j];
        if (!reach || hidden.has(j)) return [];
        const [a, b] = reach;
        const ends = { x1: short(across(a)), y1: short(up(base + slope * a)), x2: short(across(b)), y2: short(up(base + slope * b)) };
        const line = element("line", { class: `line r${j % COLOURS}`, ...ends });
        line.append(element("title", {}, `Regime ${j}`));
        const broad = cloud.scales[j] * perUnit > BROAD * cloud.radius;
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
        if (far < least && !hidden.has(labelOf(i))) { best = i; least = far; }
      }
      return best;
    }

    function walk(step, outliersOnly) {
      const order = Array.from({ length: count }, (_, i) => i)
        .filter((i) => !hidden.has(labelOf(i)) && (!outliersOnly || i >= cloud.inside))
        .sort((a, b) => places[a][0] - places[b][0] || a - b);
      if (!order.length) return;
      const at = order.indexOf(current);
      if (at < 0) show(order[step > 0 ? 0 : order.length - 1], true);
      else show(order[(at + step + order.length) % order.length], true);
    }

    const KEYS = {
      ArrowRight: () => walk(1, false), ArrowLeft: () => walk(-1, false),
      ArrowDown: () => walk(1, true), ArrowUp: () => walk(-1, true),
      Escape: leave,
    };
    plot.tabIndex = 0;
    plot.addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      KEYS[event.key]();
    });
    plot.addEventListener("pointermove", (event) => { const i = nearest(event); if (i < 0) leave(); else if (i !== current) show(i, false); });
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    chooser?.addEventListener("change", draw);
    adjust?.addEventListener("change", draw);

    for (const item of document.querySelectorAll("#legend > li")) {
      const button = document.createElement("button"), label = Number(item.dataset.regime);
      button.type = "button";
      button.append(...item.childNodes);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        if (!hidden.delete(label)) hidden.add(label);
        button.setAttribute("aria-pressed", String(!hidden.has(label)));
        draw();
      });
      item.append(button);
    }
    let drawnAt = 0;
    new ResizeObserver(() => {
      if (Math.abs(plot.clientWidth - drawnAt) < 1) return;
      drawnAt = plot.clientWidth;
      draw();
    }).observe(plot);
  }

  // --- outliers ---------------------------------------------------------------------------------
  function startOutliers(list) {
    const table = byId("outlier-table"), body = table.tBodies[0], search = byId("search"), found = byId("found");
    const rows = [...body.rows], order = rows.map((_, i) => i);
    const keys = rows.map((row) => row.cells[0].textContent).map((key) => (list.numbered ? Number(key) : key));
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const collator = new Intl.Collator(undefined, { numeric: true });
    const headers = [...table.tHead.rows[0].cells];

    function value(i, column) {
      if (column === 0) return keys[i];
      const cell = list.numbers[column - 1][i];
      return cell === null ? Infinity : cell;
    }

    function sort(column) {
      const header = headers[column];
      const down = header.getAttribute("aria-sort") !== "descending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      order.sort((a, b) => {
        const [p, q] = [value(a, column), value(b, column)];
        const sign = typeof p === "string" ? collator.compare(p, q) : p === q ? 0 : p - q;
        return (down ? -sign : sign) || a - b;
      });
      body.append(...order.map((i) => rows[i]));
    }

    function filter() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      found.textContent = `${grouped(String(shown))} of ${grouped(String(rows.length))} rows`;
    }

    // A spreadsheet would run text that begins like this as a formula; a number is no danger.
    function safe(cell) {
      if (cell === null) return "";
      let text = String(cell);
      if (typeof cell === "string" && /^[\s=+\-@|%]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text)) text = `'${text}`;
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    }

    function save() {
      const lines = [list.columns, ...order.filter((i) => !rows[i].hidden)
        .map((i) => [keys[i], ...list.numbers.map((column) => column[i])])];
      const text = lines.map((line) => line.map(safe).join(",")).join("\r\n");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([`\ufeff${text}\r\n`], { type: "text/csv" }));
      link.download = "outliers.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    headers.forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(column));
      header.append(button);
    });
    search.addEventListener("input", filter);
    byId("export").addEventListener("click", save);
  }

  if (data.scatter) startScatter(data.scatter);
  if (data.outliers) startOutliers(data.outliers);
})();
