// Which kernel each step takes, and what every other one said.
function kernelsSection(data) {
  const { steps, timing } = data;
  const byKernel = new Map();
  for (const step of steps) {
    const name = step.kernel || step.kind;
    const entry = byKernel.get(name) || { name, steps: 0, seconds: 0, flops: 0, reference: false };
    entry.steps += 1;
    if (step.candidates.length > 0) entry.seconds += step.seconds;
    entry.flops += step.flops * step.runs;
    entry.reference ||= step.reference;
    byKernel.set(name, entry);
  }
  const kernels = [...byKernel.values()];
  const most = Math.max(...kernels.map((entry) => entry.seconds), 1e-30);
  const timed = timing.run_seconds > 0;
  const totals = sortedTable([
    { title: "kernel", cell: (k) => (k.reference ? el("span", { class: "slow" }, `${k.name} (plain loops)`) : k.name), value: (k) => k.name },
    { title: "steps", right: true, cell: (k) => String(k.steps), value: (k) => k.steps },
    timed && { title: "time", right: true, cell: (k) => [timeText(k.seconds), bar(k.seconds / most)], value: (k) => k.seconds },
    timed && { title: "of the run", right: true, cell: (k) => percentText(k.seconds / timing.steps_seconds), value: (k) => k.seconds },
    timed && { title: "GFLOP/s", right: true, cell: (k) => (k.flops > 0 && k.seconds > 0 ? (k.flops / k.seconds / 1e9).toPrecision(3) : ""), value: (k) => k.flops / (k.seconds || 1) },
  ].filter(Boolean), kernels, { sort: timed ? 2 : 1, down: true, label: "Kernels" });

  const asked = steps.filter((step) => step.candidates.length > 0);
  const table = sortedTable([
    { title: "step", right: true, cell: (step) => String(step.index), value: (step) => step.index },
    { title: "operation", cell: (step) => step.op, value: (step) => step.op },
    { title: "taken", cell: kernelText, value: (step) => step.kernel },
    { title: "cost", right: true, cell: (step) => costOf(step), value: (step) => (takenOf(step) || { cost: 0 }).cost, hint: "kernels are chosen by it: the kernel’s own estimate for one core, or what it took when the network was tuned" },
    timed && { title: "measured", right: true, cell: (step) => (step.runs > 0 ? timeText(step.seconds / step.runs) : ""), value: (step) => step.seconds },
    { title: "the others, and why not", wide: true, cell: othersOf },
    { title: "node", name: true, cell: (step) => el("span", { title: step.node }, step.node), value: (step) => step.node },
  ].filter(Boolean), asked, { sort: 0, label: "Kernels by step" });
  section("kernels", "Kernels",
    el("p", { class: "lead" }, "Every kernel of an operator is asked; of those that take a step the least cost wins: an estimate, or a time where the network was tuned. The reasons are the kernels’ own words."),
    totals, el("h3", null, "By step"),
    el("div", { class: "tools" }, filterOf(table, "Filter by kernel, operation, reason or node", (step) => [step.op, step.node, step.kernel, ...step.candidates.flatMap((one) => [one.row, one.refusal])])),
    table);
}

const takenOf = (step) => step.candidates.find((one) => one.taken);
const costOf = (step) => { const taken = takenOf(step); return taken ? timeText(taken.cost) + (taken.measured ? " measured" : "") : ""; };

function othersOf(step) {
  const others = step.candidates.filter((one) => !one.taken);
  if (others.length === 0) return el("span", { class: "soft" }, "none");
  const fit = others.filter((one) => one.refusal === "");
  const refused = others.filter((one) => one.refusal !== "");
  const line = (one) => el("div", { class: one.refusal ? "refused" : null }, el("code", null, one.row), " ",
    one.refusal ? `refuses: ${one.refusal}` : step.unknown ? "would take it" : one.measured ? `took ${timeText(one.cost)}` : `would take it, at an estimate of ${timeText(one.cost)}`);
  const words = [fit.length > 0 && `${fit.length} slower`, refused.length > 0 && plural(refused.length, "refusal")].filter(Boolean).join(", ");
  const details = el("details", null, el("summary", null, words));
  details.addEventListener("toggle", () => { if (details.childElementCount === 1) details.append(...others.map(line)); });
  return details;
}
