// The first screen: what it is, what it takes, and the figures that one looks for first.
function summarySection(data) {
  const { memory, timing, steps } = data;
  const timed = timing.run_seconds > 0;
  const flops = sum(steps, (step) => step.flops * step.runs);
  const slow = steps.filter((step) => step.reference).length;
  const tile = (id, what, figure, more) => el("div", { class: "tile", id: `tile-${id}` },
    el("div", { class: "what" }, what), el("div", { class: "figure" }, figure), el("div", { class: "more" }, more));
  const tiles = el("div", { class: "tiles" },
    timed && tile("time", "one run", timeText(timing.run_seconds),
      [`median of ${timing.runs} on ${plural(timing.threads, "thread")}, the fastest ${timeText(timing.fastest_seconds)}`,
        timing.noise && el("span", { class: "slow" }, "; the machine was noisy")]),
    timed && tile("rate", "arithmetic", flopRate(flops / timing.run_seconds),
      `${flopText(flops)}; ${percentText(flops / timing.run_seconds / timing.peak_flops)} of the measured peak`),
    tile("arena", "memory arena", bytesText(memory.arena_bytes), memory.lower_bound_bytes > 0
      ? `${(memory.arena_bytes / memory.lower_bound_bytes).toFixed(3)}× the lower bound; kernels’ scratch ${bytesText(memory.scratch_bytes)}`
      : `nothing between the steps; kernels’ scratch ${bytesText(memory.scratch_bytes)}`),
    tile("weights", "weights", bytesText(memory.constant_bytes), plural(data.weights_count, "tensor") + ", as the engine holds them"),
    tile("steps", "steps", String(data.steps_count),
      slow === 0 ? "all on kernels" : el("span", { class: "slow" }, `${slow} on operators’ plain loops`)),
    data.passes && tile("passes", "nodes", `${data.passes.all.before} → ${data.passes.all.after}`,
      `through ${data.passes.table.filter((pass) => pass.changed).length} passes that changed something`));

  const port = (what) => (row) => ({ what, ...row });
  const ports = sortedTable([
    { title: "", cell: (row) => row.what },
    { title: "name", cell: (row) => row.name, name: true },
    { title: "type", cell: (row) => row.dtype },
    { title: "shape", cell: (row) => sizesText(row.sizes) },
    { title: "here", cell: (row) => (row.run_sizes ? sizesText(row.run_sizes) : el("span", { class: "soft" }, "its data decides")) },
  ], [...data.inputs.map(port("input")), ...data.outputs.map(port("output"))], { label: "Inputs and outputs" });

  const device = data.device;
  const facts = [
    ["file", data.file],
    ["made by", `${data.producer}, for ${data.target}`],
    [data.is_engine ? "loaded in" : "compiled in", timeText(data.open_seconds)],
    ["measured on", `${device.name}, ${plural(device.cores, "core")}, ${device.cluster}, ${bytesText(device.memory_bytes)} of memory`],
    ...data.dims.map((dim) => ["open size", `${dim.name} in ${dim.low}…${dim.high === null ? "" : dim.high}`]),
    ["chosen here", data.chosen.length > 0 && `${data.chosen.join(", ")} (nobody gave these sizes; --shape and --dim do)`],
  ];
  section("summary", "Summary",
    el("p", { class: "lead" }, data.is_engine ? "An engine: compiled before, loaded as it is." : "A model, compiled for this report."),
    tiles, ports,
    el("dl", null, facts.filter(([, text]) => text).map(([word, text]) => [el("dt", null, word), el("dd", null, text)])),
    data.remarks.length > 0 && el("details", null, el("summary", null, `What the compiler remarked (${data.remarks.length})`),
      el("pre", { class: "lines" }, data.remarks.join("\n"))));
}

const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
