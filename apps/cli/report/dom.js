// Elements, numbers with units, and the one tooltip. Text reaches the page as text only: no name is ever parsed as HTML.
const svgSpace = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(svgSpace, tag), attributes, children);

function withUnit(value, step, units, digits = 3) {
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) { value /= step; ++unit; }
  if (unit === 0 && Number.isInteger(value)) return `${value} ${units[0]}`;
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.max(Math.abs(value), 1))));
  return `${value.toFixed(places)} ${units[unit]}`;
}
const bytesText = (value) => withUnit(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const flopText = (value) => withUnit(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
const flopRate = (value) => withUnit(value, 1000, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"]);
const byteRate = (value) => withUnit(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
const percentText = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const sizesText = (sizes) => (sizes.length === 0 ? "scalar" : sizes.join("×"));
const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1)}…`);
const shortenStart = (text, length) => (text.length <= length ? text : `…${text.slice(1 - length)}`);  // a path's end says most
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

function timeText(seconds) {
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  const [scale, unit] = seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${Number((seconds * scale).toPrecision(3))} ${unit}`;
}

const tip = document.getElementById("tip");
function showTip(lines, x, y) {
  tip.replaceChildren(...lines.filter((line) => line).map((line, i) => el(i === 0 ? "b" : "div", null, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth ? x - box.width - 10 : x + 14;
  const top = y + 16 + box.height > innerHeight ? y - box.height - 10 : y + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("scroll", hideTip, { passive: true });

// Shows `describe()` (lines, the first bold) while the pointer or the focus is on the node.
function describes(node, describe) {
  node.addEventListener("pointermove", (event) => showTip(describe(), event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    if (!node.matches(":focus-visible")) return;
    const box = node.getBoundingClientRect();
    showTip(describe(), Math.min(box.right, innerWidth - 40), Math.min(box.bottom, innerHeight - 40));
  });
  node.addEventListener("blur", hideTip);
  return node;
}

// Arrow keys walk through the items of a chart; one of them is in the tab order.
function walkable(chart, items) {
  items.forEach((item, i) => item.setAttribute("tabindex", i === 0 ? "0" : "-1"));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = items.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = items[Math.min(items.length - 1, Math.max(0, at + step))];
    items[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus({ focusVisible: true });
  });
}

// Draws again whenever the width changes.
function chart(label, paint) {
  const frame = el("div", { class: "chart" });
  let width = 0;
  const repaint = () => {
    const now = Math.floor(frame.clientWidth);
    if (now === width || now < 50) return;
    width = now;
    const picture = paint(now);
    picture.setAttribute("role", "group");
    picture.setAttribute("aria-label", label);
    frame.replaceChildren(picture);
  };
  new ResizeObserver(() => requestAnimationFrame(repaint)).observe(frame);
  frame.repaint = repaint;
  return frame;
}

function section(id, title, ...content) {
  document.getElementById("sections").append(el("a", { href: `#${id}` }, title));
  const node = el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content);
  document.getElementById("main").append(node);
  for (const frame of node.querySelectorAll(".chart")) if (frame.repaint) frame.repaint();
  return node;
}
