// The plan of the memory: who lives where in the arena from which step to which.
const blockColours = ["#88ccee", "#44aa99", "#ddcc77", "#ee8866", "#cc99bb", "#99ddaa", "#e6c0a0", "#8fb3ff", "#c2c87a", "#f2a6b5"];

function memorySection(data) {
  const memory = data.memory;
  const arenas = new Map();
  for (const block of memory.blocks) {
    if (!arenas.has(block.arena)) arenas.set(block.arena, []);
    arenas.get(block.arena).push(block);
  }
  const intro = `Each block is a tensor, from the step that writes it to the last that reads it; no two overlap. Inputs, outputs and weights live elsewhere.`;
  const content = [el("p", { class: "lead" }, intro)];
  if (memory.blocks_left_out > 0) content.push(el("p", { class: "note" }, `The ${memory.blocks.length} largest blocks are shown, ${memory.blocks_left_out} smaller ones are not.`));
  if (memory.blocks.length === 0) content.push(el("p", { class: "note" }, "Nothing lives between the steps: the arena is empty."));
  for (const [arena, blocks] of [...arenas].sort((a, b) => a[0] - b[0])) {
    if (arenas.size > 1) content.push(el("h3", null, arena === 0 ? "Arena of sizes that follow from the inputs’" : `Arena ${arena}: sizes that data gave in this run`));
    content.push(arenaChart(data, blocks, arenas.size > 1 ? null : memory));
  }
  const table = memory.blocks.length > 0 && sortedTable([
    { title: "offset", right: true, cell: (b) => b.offset.toLocaleString("en"), value: (b) => b.offset },
    { title: "bytes", right: true, cell: (b) => b.bytes.toLocaleString("en"), value: (b) => b.bytes },
    { title: "steps", right: true, cell: (b) => `${b.first}…${b.last}`, value: (b) => b.first },
    { title: "type", cell: (b) => b.dtype, value: (b) => b.dtype },
    { title: "shape", cell: (b) => (b.workspace ? "" : sizesText(b.sizes)) },
    { title: "tensor", cell: (b) => b.name, value: (b) => b.name, name: true },
  ], memory.blocks, { sort: 1, down: true, label: "Blocks of the arena" });
  section("memory", "Memory over time", content, table && el("details", null, el("summary", null, `The ${plural(memory.blocks.length, "block")} as a table`), table));
}

// What lives at each step of the program, rounded up as the planner does.
function aliveByStep(blocks, steps) {
  const change = new Float64Array(steps + 1);
  for (const block of blocks) {
    const size = Math.ceil(block.bytes / 64) * 64;
    change[block.first] += size;
    change[block.last + 1] -= size;
  }
  let alive = 0;
  return Array.from({ length: steps }, (_, i) => (alive += change[i]));
}

function arenaChart(data, blocks, memory) {
  const steps = data.steps_count;
  const top = memory ? memory.arena_bytes : Math.max(...blocks.map((b) => b.offset + b.bytes));
  const alive = aliveByStep(blocks, steps);
  const most = alive.reduce((best, size, i) => (size > alive[best] ? i : best), 0);
  return chart("Memory arena: bytes by step", (width) => {
    const left = 74, right = 14, height = 380, above = 26, below = 34;
    const x = (step) => left + (width - left - right) * step / steps;
    const y = (bytes) => above + (height - above - below) * (1 - bytes / top);
    const parts = [];
    for (const value of niceTicks(top, 5)) {
      parts.push(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
        draw("text", { class: "soft", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, bytesText(value)));
    }
    const every = Math.max(1, Math.ceil(steps / Math.max(2, (width - left) / 60)));
    for (let step = 0; step < steps; step += every) {
      parts.push(draw("text", { class: "soft", x: (x(step) + x(step + 1)) / 2, y: height - below + 16, "text-anchor": "middle" }, String(step)));
    }
    parts.push(draw("text", { class: "soft", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "step"));
    const items = blocks.map((block, i) => {
      const [x1, x2, y1, y2] = [x(block.first), x(block.last + 1), y(block.offset + block.bytes), y(block.offset)];
      const rect = draw("rect", { class: "block", x: x1.toFixed(2), y: y1.toFixed(2), width: Math.max(0.5, x2 - x1).toFixed(2), height: Math.max(0.5, y2 - y1).toFixed(2),
        fill: block.workspace ? "var(--neutral)" : blockColours[i % blockColours.length], role: "img", "aria-label": block.name });
      const group = draw("g", null, describes(rect, () => [block.name, block.workspace ? "memory of the kernel of this step" : `${block.dtype} ${sizesText(block.sizes)}`,
        `${bytesText(block.bytes)} (${block.bytes.toLocaleString("en")} bytes) at offset ${block.offset.toLocaleString("en")}`,
        block.first === block.last ? `step ${block.first} only` : `steps ${block.first} to ${block.last}`]));
      const letters = Math.floor((x2 - x1 - 8) / 6.6);
      if (letters >= 4 && y2 - y1 >= 15) {
        group.append(draw("text", { class: "on-block", x: x1 + 5, y: (y1 + y2) / 2 + 4 }, shortenStart(block.name, letters)));
        if (y2 - y1 >= 32) group.append(draw("text", { class: "on-block", x: x1 + 5, y: (y1 + y2) / 2 + 18 }, shorten(bytesText(block.bytes), letters)));
      }
      return { rect, group };
    });
    parts.push(...items.map((item) => item.group));
    parts.push(draw("rect", { class: "peak", x: x(most), y: above, width: Math.max(2, x(most + 1) - x(most)), height: height - above - below }));
    const live = draw("path", { class: "live", d: alive.map((size, i) => `M${x(i).toFixed(1)},${y(size).toFixed(1)}H${x(i + 1).toFixed(1)}`).join("") });
    parts.push(live);
    if (memory) {
      parts.push(draw("line", { class: "limit", x1: left, x2: width - right, y1: y(top), y2: y(top) }),
        draw("line", { class: "limit bound", x1: left, x2: width - right, y1: y(memory.lower_bound_bytes), y2: y(memory.lower_bound_bytes) }),
        draw("text", { x: width - right, y: above - 10, "text-anchor": "end" },
          `arena ${bytesText(memory.arena_bytes)} · lower bound ${bytesText(memory.lower_bound_bytes)} (dashed) · most is alive at step ${most}`));
    }
    const svg = draw("svg", { width, height }, parts);
    walkable(svg, items.map((item) => item.rect));
    return svg;
  });
}

// About `count` round numbers of bytes from 0 to `top`.
function niceTicks(top, count) {
  const unit = 1024 ** Math.floor(Math.log(Math.max(top / count, 1)) / Math.log(1024));
  const raw = top / count / unit;
  const step = unit * ([1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 400, 512, 1024].find((nice) => nice >= raw) || 1024);
  const out = [];
  for (let value = 0; value <= top * 0.97; value += step) out.push(value);
  return out;
}
