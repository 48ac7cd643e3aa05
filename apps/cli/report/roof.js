// Steps against the roof (Williams, Waterman, Patterson 2009): no step is faster than its arithmetic at the peak, nor than its
// bytes at the bandwidth. The bandwidth is that which as many bytes as the step touches reach here: the caches' where they fit.
function bandwidthOf(bytes, bandwidths) {
  let i = bandwidths.findIndex(([size]) => size >= bytes);
  if (i < 0) return bandwidths[bandwidths.length - 1][1];
  if (i === 0) return bandwidths[0][1];
  const [[size1, rate1], [size2, rate2]] = [bandwidths[i - 1], bandwidths[i]];
  const share = Math.log(bytes / size1) / Math.log(size2 / size1);
  return rate1 * (rate2 / rate1) ** share;
}

// Adds what follows from a step's time: its share, rates, bound and the part of the roof it reaches.
function measureSteps(data) {
  const { timing, steps } = data;
  for (const step of steps) {
    if (!(timing.run_seconds > 0) || step.runs === 0) continue;
    const each = step.seconds / step.runs;
    step.share = timing.steps_seconds > 0 ? step.seconds / timing.steps_seconds : 0;
    if (step.bytes === 0 || each === 0) continue;
    const compute = step.flops / timing.peak_flops;
    const moving = step.bytes / bandwidthOf(step.bytes, timing.bandwidths);
    step.bound = compute > moving ? "compute" : "memory";
    step.of_roof = Math.max(compute, moving) / each;
    step.flop_rate = step.flops / each;
    step.byte_rate = step.bytes / each;
  }
}

function roofChart(data) {
  const { timing } = data;
  const points = data.steps.filter((step) => step.flops > 0 && step.flop_rate > 0);
  const rates = timing.bandwidths.map(([, rate]) => rate);
  const [fastest, slowest] = [Math.max(...rates), rates[rates.length - 1]];
  return chart("Roofline: arithmetic rate by operations per byte", (width) => {
    const height = Math.min(460, Math.max(320, width * 0.42));
    const left = 84, right = 18, above = 24, below = 40;
    const intensities = points.map((step) => step.flops / step.bytes);
    const low = 10 ** Math.floor(Math.log10(Math.min(0.1, ...intensities)) - 0.01);
    const high = 10 ** Math.ceil(Math.log10(Math.max(100, timing.peak_flops / slowest * 3, ...intensities)));
    const top = timing.peak_flops * 2.2;
    const bottom = Math.min(timing.peak_flops / 3e3, ...points.map((step) => step.flop_rate / 2));
    const x = (intensity) => left + (width - left - right) * Math.log(intensity / low) / Math.log(high / low);
    const y = (rate) => above + (height - above - below) * (1 - Math.log(rate / bottom) / Math.log(top / bottom));
    const parts = [];
    for (let value = 10 ** Math.ceil(Math.log10(low)); value <= high; value *= 10) {
      parts.push(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: above, y2: height - below }),
        draw("text", { class: "soft", x: x(value), y: height - below + 16, "text-anchor": "middle" }, value >= 1 ? String(Math.round(value)) : String(Number(value.toPrecision(2)))));
    }
    for (let value = 10 ** Math.ceil(Math.log10(bottom)); value <= top; value *= 10) {
      parts.push(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
        draw("text", { class: "soft", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, flopRate(value).replace(/\.0+ /, " ")));
    }
    parts.push(draw("text", { class: "soft", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "FLOP per byte of operands, weights and results"));
    const roof = (rate, name, kind) => {
      const ridge = timing.peak_flops / rate;
      const start = Math.max(low, bottom / rate);
      parts.push(draw("path", { class: `roof ${kind}`, d: `M${x(start)},${y(start * rate)}L${x(ridge)},${y(timing.peak_flops)}H${width - right}` }));
      const at = Math.max(start * 1.15, low * 1.3);
      const angle = -Math.atan2((height - above - below) / Math.log(top / bottom), (width - left - right) / Math.log(high / low)) * 180 / Math.PI;
      parts.push(draw("text", { transform: `translate(${x(at)} ${y(at * rate) - 6}) rotate(${angle.toFixed(1)})` }, `${name} ${byteRate(rate)}`));
    };
    roof(fastest, "cache", "cache");
    roof(slowest, "memory", "");
    parts.push(draw("text", { x: width - right, y: y(timing.peak_flops) - 7, "text-anchor": "end" }, `peak ${flopRate(timing.peak_flops)} (f32 multiply-adds)`));
    const items = [...points].sort((a, b) => b.share - a.share).map((step) => describes(
      draw("circle", { class: `point ${step.bound}`, cx: x(step.flops / step.bytes).toFixed(1), cy: y(step.flop_rate).toFixed(1), r: (3.5 + 26 * Math.sqrt(step.share)).toFixed(1),
        role: "img", "aria-label": `step ${step.index}`, onclick: () => lightUp(step), onkeydown: (event) => { if (event.key === "Enter") lightUp(step); } }),
      () => stepLines(step)));
    const svg = draw("svg", { width, height }, parts, items);
    walkable(svg, items);
    return svg;
  });
}

const stepLines = (step) => [`step ${step.index}: ${step.op}`, step.node, step.kernel && `kernel ${step.kernel}`,
  `${timeText(step.seconds)}, ${percentText(step.share)} of the run${step.runs > 1 ? `, in ${step.runs} trips` : ""}`,
  `${flopRate(step.flop_rate)}, ${byteRate(step.byte_rate)}: ${percentText(step.of_roof)} of its roof, ${step.bound}-bound`];

// To the step's line in the table.
function lightUp(step) {
  for (const line of document.querySelectorAll("tr.lit")) line.classList.remove("lit");
  document.getElementById("steps-table").showAll();
  const line = document.getElementById(`step-${step.index}`);
  if (!line) return;
  line.classList.add("lit");
  line.scrollIntoView({ block: "center", behavior: "smooth" });
}
