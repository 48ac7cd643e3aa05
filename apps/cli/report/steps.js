// Every step with its time, and how near it comes to what the machine can do.
function stepsSection(data) {
  measureSteps(data);
  const { timing, steps } = data;
  const timed = timing.run_seconds > 0;
  const nested = (step) => (step.depth > 0 ? `padding-left:${0.6 + 1.3 * step.depth}em` : null);
  const name = (step) => el("span", { style: nested(step) }, step.depth > 0 && el("span", { class: "soft" }, `${step.label} ▸ `), step.op);
  const rate = (text, value) => ({ cell: (step) => (step[value] > 0 ? text(step[value]) : ""), value: (step) => step[value] || 0, right: true });
  const number = (value) => (value >= 0.001 ? value.toPrecision(3) : "< 0.001");
  const longest = Math.max(0, ...steps.map((step) => step.share || 0));
  const columns = [
    { title: "step", right: true, cell: (step) => String(step.index), value: (step) => step.index },
    { title: "operation", cell: name, value: (step) => step.op },
    timed && { title: "time", right: true, cell: (step) => (step.runs > 0 ? timeText(step.seconds) : "not run"), value: (step) => step.seconds },
    timed && { title: "of the run", right: true, cell: (step) => (step.share === undefined ? "" : [percentText(step.share), bar(step.share / longest, step.bound)]), value: (step) => step.share || 0 },
    { title: "GFLOP", right: true, cell: (step) => (step.flops > 0 ? number(step.flops * Math.max(step.runs, 1) / 1e9) : ""), value: (step) => step.flops * step.runs, hint: "arithmetic of the operator’s definition, 2 per multiply-add, whatever the kernel does" },
    { title: "MB", right: true, cell: (step) => (step.bytes > 0 ? number(step.bytes * Math.max(step.runs, 1) / 1e6) : ""), value: (step) => step.bytes * step.runs, hint: "operands, weights and results, each once" },
    timed && { title: "GFLOP/s", ...rate((value) => number(value / 1e9), "flop_rate") },
    timed && { title: "GB/s", ...rate((value) => number(value / 1e9), "byte_rate") },
    timed && { title: "of its roof", right: true, cell: (step) => (step.of_roof === undefined ? "" : [percentText(step.of_roof), bar(step.of_roof, step.bound)]), value: (step) => step.of_roof || 0 },
    timed && { title: "bound by", cell: (step) => (step.bound ? [el("span", { class: `dot ${step.bound}` }), step.bound] : ""), value: (step) => step.bound || "" },
    { title: "kernel", cell: kernelText, value: (step) => step.kernel },
    { title: "result", cell: (step) => step.result, value: (step) => step.result },
    { title: "node", cell: (step) => el("span", { title: step.node }, step.node), value: (step) => step.node, name: true },
  ].filter(Boolean);
  const table = sortedTable(columns, steps, {
    sort: 0, label: "Steps",
    decorate: (line, step) => { line.id = `step-${step.index}`; if (step.depth > 0) line.className = "nested"; },
  });
  table.id = "steps-table";
  const biggest = timed && steps.filter((step) => step.of_roof !== undefined && step.kind !== "loop" && step.kind !== "branch");
  const lost = biggest && [...biggest].map((step) => [step.seconds * (1 - Math.min(1, step.of_roof)), step]).sort((a, b) => b[0] - a[0])[0];
  section("steps", "Steps against the roof",
    el("p", { class: "lead" }, timed
      ? `Times are medians over ${plural(timing.runs, "run")} of random inputs on ${plural(timing.threads, "thread")}; the steps together take ${timeText(timing.steps_seconds)}. ` +
        `The peak and the bandwidths were measured in the same process. A step’s roof is the lesser of the peak and its operations per byte times the bandwidth of as many bytes as it touches.`
      : "The network was not timed."),
    timing.noise && el("p", { class: "note" }, `The machine was too noisy to believe these times: ${timing.noise}.`),
    timing.error && el("p", { class: "note" }, `The timing run ended with an error: ${timing.error}`),
    data.steps_left_out > 0 && el("p", { class: "note" }, `${steps.length.toLocaleString("en")} of ${plural(data.steps_count, "step")} are listed, those that take the longest.`),
    lost && lost[0] > 0 && el("p", null, "Most time between a step and its roof: ", el("a", { href: `#step-${lost[1].index}`, onclick: (event) => { event.preventDefault(); lightUp(lost[1]); } },
      `step ${lost[1].index}, ${lost[1].op}`), ` (${timeText(lost[0])}, ${percentText(lost[0] / timing.steps_seconds)} of the run).`),
    timed && steps.some((step) => step.flops > 0 && step.flop_rate > 0) && [el("h3", null, "Roofline"), el("p", { class: "soft" },
      el("span", { class: "dot compute" }), "compute-bound  ", el("span", { class: "dot memory" }), "memory-bound; areas are shares of the run. Choose a point to see its line in the table."), roofChart(data)],
    el("h3", null, "All steps"),
    el("div", { class: "tools" }, filterOf(table, "Filter by operation, kernel or node", (step) => [step.op, step.kernel, step.node])), table);
}

function kernelText(step) {
  if (step.reference) return el("span", { class: "slow" }, "plain loops");
  if (step.kernel) return step.kernel;
  if (step.unknown && step.candidates.length > 0) return `${step.candidates.map((one) => one.row).join(" or ")} (data decides)`;
  return step.candidates.length > 0 ? "none: the result is empty" : step.kind;
}
