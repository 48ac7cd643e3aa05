// The weights: what each tensor has, and what the engine holds of it.
function weightsSection(data) {
  const weights = data.weights;
  if (weights.length === 0) {
    section("weights", "Weights", el("p", { class: "note" }, "The engine holds no constants."));
    return;
  }
  const original = sum(weights, (w) => w.original_bytes);
  const held = sum(weights, (w) => w.bytes);
  const most = Math.max(...weights.map((w) => w.bytes));
  const table = sortedTable([
    { title: "tensor", name: true, cell: (w) => el("span", { title: w.name }, w.name), value: (w) => w.name },
    { title: "type", cell: (w) => w.dtype, value: (w) => w.dtype },
    { title: "shape", cell: (w) => w.shape },
    { title: "elements’ bytes", right: true, cell: (w) => (w.original_bytes > 0 ? w.original_bytes.toLocaleString("en") : ""), value: (w) => w.original_bytes },
    { title: "held bytes", right: true, cell: (w) => [w.bytes.toLocaleString("en"), bar(w.bytes / most)], value: (w) => w.bytes },
    { title: "packed / elements", right: true, cell: (w) => (w.format && w.original_bytes > 0 ? `${(w.bytes / w.original_bytes).toFixed(2)}×` : ""), value: (w) => (w.format && w.original_bytes > 0 ? w.bytes / w.original_bytes : 0) },
    { title: "held as", cell: (w) => w.format || "elements", value: (w) => w.format },
    { title: "read by steps", cell: (w) => shorten(w.steps.join(", "), 28), value: (w) => w.steps[0] ?? -1 },
  ], weights, { sort: 4, down: true, label: "Weights" });
  section("weights", "Weights",
    el("p", { class: "lead" }, `${plural(data.weights_count, "constant")}, ${bytesText(data.memory.constant_bytes)} in the engine` +
      (original > 0 && weights.some((w) => w.format) ? `; those whose elements are known hold ${bytesText(held)} for ${bytesText(original)}, since kernels pad what they pack.` : ".")),
    data.weights_left_out > 0 && el("p", { class: "note" }, `The ${weights.length} largest are listed, ${data.weights_left_out} smaller ones are not.`),
    treemap(weights), el("div", { class: "tools" }, filterOf(table, "Filter by tensor, shape or packing", (w) => [w.name, w.shape, w.format])), table);
}

// Squarified (Bruls, Huizing, van Wijk 2000): rows of rectangles, closed when one more would make them longer.
function squarify(sizes, x, y, width, height) {
  const out = [];
  const total = sizes.reduce((all, size) => all + size, 0);
  const areas = sizes.map((size) => size / total * width * height);
  const worst = (row, side) => {
    const all = row.reduce((sum, area) => sum + area, 0);
    return Math.max(side * side * Math.max(...row) / (all * all), all * all / (side * side * Math.min(...row)));
  };
  for (let start = 0; start < areas.length;) {
    const side = Math.min(width, height);
    let end = start + 1;
    while (end < areas.length && worst(areas.slice(start, end + 1), side) <= worst(areas.slice(start, end), side)) ++end;
    const row = areas.slice(start, end);
    const thick = row.reduce((sum, area) => sum + area, 0) / side;
    let at = 0;
    for (const area of row) {
      const long = area / thick;
      out.push(width >= height ? { x, y: y + at, width: thick, height: long } : { x: x + at, y, width: long, height: thick });
      at += long;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    start = end;
  }
  return out;
}

function treemap(weights) {
  const shown = weights.filter((w) => w.bytes > 0).sort((a, b) => b.bytes - a.bytes).slice(0, 400);
  return chart("Weights by their bytes in the engine", (width) => {
    const height = Math.min(340, Math.max(200, width * 0.26));
    const cells = squarify(shown.map((w) => w.bytes), 0, 0, width, height);
    const items = cells.map((cell, i) => {
      const w = shown[i];
      const rect = draw("rect", { class: "block cell", x: cell.x.toFixed(2), y: cell.y.toFixed(2), width: cell.width.toFixed(2), height: cell.height.toFixed(2), fill: blockColours[i % blockColours.length], role: "img", "aria-label": w.name });
      describes(rect, () => [w.name, `${w.dtype} ${w.shape}`, `${bytesText(w.bytes)} ${w.format ? `packed as ${w.format}` : "as elements"}`, w.original_bytes > 0 && w.format ? `${bytesText(w.original_bytes)} of elements` : null]);
      const letters = Math.floor((cell.width - 8) / 6.6);
      const texts = letters >= 5 && cell.height >= 18 ? [draw("text", { class: "on-block", x: cell.x + 5, y: cell.y + 15 }, shortenStart(w.name, letters))] : [];
      if (texts.length > 0 && cell.height >= 34) texts.push(draw("text", { class: "on-block", x: cell.x + 5, y: cell.y + 30 }, shorten(bytesText(w.bytes), letters)));
      return { rect, group: draw("g", null, rect, texts) };
    });
    const svg = draw("svg", { width, height }, items.map((item) => item.group));
    walkable(svg, items.map((item) => item.rect));
    return svg;
  });
}
