// One graph between two passes as a picture that can be moved and enlarged.

// The boxes and edges of a state: nodes, the caller's inputs, his outputs. Constants are left out unless asked for: a graph of
// networks has more weights than nodes. A value that a region's node reads from outside comes from the node that owns the region.
function boxesOf(state, pool, withConstants) {
  const boxes = [], edges = [], seen = new Set();
  const scopes = [{ values: new Map(), owner: -1 }];
  const add = (box) => {
    const longest = Math.max(box.lines[0].length + 2, ...box.lines.map((line) => line.length));  // a mark may stand before the first
    boxes.push({ ...box, width: Math.max(54, longest * 6.7 + 16), height: box.lines.length * 15 + 9 });
    return boxes.length - 1;
  };
  const connect = (from, to, owns) => {
    if (from < 0 || seen.has(`${from} ${to}`)) return;
    seen.add(`${from} ${to}`);
    edges.push([from, to, owns]);
  };
  for (const index of state.nodes) {
    const node = pool[index];
    while (scopes.length > node.depth + 1) scopes.pop();
    const scope = scopes[node.depth];
    if (!node.constant || withConstants) {
      const reads = [];
      for (const name of node.reads) {
        if (name === "") continue;
        if (!scope.values.has(name)) {
          scope.values.set(name, node.depth > 0 ? scope.owner : add({ port: true, lines: [shorten(name, 30)], title: `input ${name}` }));
        }
        reads.push(scope.values.get(name));
      }
      const lines = [shorten(node.op, 44)];
      if (node.types.length > 0) lines.push(shorten(node.types[0], 44));
      const at = add({ index, lines, title: node.name });
      for (const from of reads) connect(from, at, node.depth > 0 && from === scope.owner);
      if (node.depth > 0 && reads.length === 0) connect(scope.owner, at, true);
      for (const name of node.writes) scope.values.set(name, at);
      scopes[node.depth + 1] = { values: new Map(), owner: at };
    } else {
      for (const name of node.writes) scope.values.set(name, -1);
    }
  }
  for (const name of state.outputs) {
    const from = scopes[0].values.get(name) ?? -1;
    connect(from, add({ port: true, lines: [shorten(name, 30)], title: `output ${name}` }), false);
  }
  return { boxes, edges };
}

// marks: pool index → "added", "removed" or "changed"; choose(index) is called for a node that is clicked.
function graphView(label, state, pool, marks, withConstants, choose) {
  const { boxes, edges } = boxesOf(state, pool, withConstants);
  const whole = layOut(boxes, edges);
  const wires = draw("g", null, whole.paths.map((points, i) => draw("path", { class: edges[i][2] ? "wire owns" : "wire", d: pathText(points), "marker-end": "url(#tip-of-wire)" })));
  const byIndex = new Map();
  const items = boxes.map((box) => {
    const mark = box.port ? "port" : marks.get(box.index) || "";
    const sign = { added: "+ ", removed: "− ", changed: "~ " }[mark] || "";
    const group = draw("g", { class: `node ${mark}`, role: "img", "aria-label": `${mark} ${box.lines[0]} ${box.title}`, transform: `translate(${box.x.toFixed(1)} ${box.y.toFixed(1)})` },
      draw("rect", { x: -box.width / 2, y: -box.height / 2, width: box.width, height: box.height, rx: 4 }),
      box.lines.map((line, i) => draw("text", { class: i === 0 ? "op" : "soft", y: -box.height / 2 + 16 + 15 * i }, (i === 0 ? sign : "") + line)));
    describes(group, () => (box.port ? [box.title] : [pool[box.index].op, pool[box.index].name, ...pool[box.index].types]));
    if (!box.port) {
      group.addEventListener("click", () => choose(box.index));
      group.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(box.index); });
      byIndex.set(box.index, { group, box });
    }
    return group;
  });
  const svg = draw("svg", { role: "group", "aria-label": label },
    draw("defs", null, draw("marker", { id: "tip-of-wire", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
      draw("path", { d: "M0,0L8,4L0,8z", fill: "context-stroke" }))), wires, items);
  walkable(svg, items);
  const frame = el("div", { class: "chart" }, svg);
  const view = movable(frame, svg, whole);
  const noted = boxes.filter((box) => !box.port && marks.has(box.index));
  let next = 0;
  return {
    frame, view,
    count: noted.length,
    // To the next node that the pass touched.
    goOn: () => { if (noted.length > 0) { const box = noted[next++ % noted.length]; view.centre(box.x, box.y); } },
    begin: () => { if (noted.length > 0) view.below(noted[0].x, noted[0].y); },
    choose: (index) => {
      for (const { group } of byIndex.values()) group.classList.remove("chosen");
      const found = byIndex.get(index);
      if (found) found.group.classList.add("chosen");
    },
    show: (index) => { const found = byIndex.get(index); if (found) view.centre(found.box.x, found.box.y); },
  };
}

// Dragging moves; the wheel enlarges once the picture was clicked or with Ctrl, so that the page scrolls over it otherwise.
function movable(frame, svg, whole) {
  let at = { x: 0, y: 0, scale: 1 };
  let awake = false, from = null;
  const size = () => ({ width: frame.clientWidth || 400, height: frame.clientHeight || 400 });
  const apply = () => {
    const { width, height } = size();
    svg.setAttribute("viewBox", `${at.x} ${at.y} ${width / at.scale} ${height / at.scale}`);
  };
  const zoom = (factor, px, py) => {
    const scale = Math.min(4, Math.max(0.02, at.scale * factor));
    at = { x: at.x + px / at.scale - px / scale, y: at.y + py / at.scale - py / scale, scale };
    apply();
  };
  const centre = (x, y, scale = Math.max(at.scale, 0.7)) => {
    const { width, height } = size();
    at = { x: x - width / scale / 2, y: y - height / scale / 2, scale };
    apply();
  };
  // A place in the upper part of the view, and nothing of what lies above the graph.
  const below = (x, y) => {
    const { width, height } = size();
    at = { x: x - width / 2, y: Math.max(0, Math.min(y - height / 4, whole.height - height)), scale: 1 };
    apply();
  };
  const fit = () => {
    const { width, height } = size();
    centre(whole.width / 2, whole.height / 2, Math.min(1, width / whole.width, height / whole.height));
  };
  svg.addEventListener("wheel", (event) => {
    if (!awake && !event.ctrlKey) return;
    event.preventDefault();
    hideTip();
    const box = frame.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { awake = true; from = { x: event.clientX, y: event.clientY, id: event.pointerId }; });
  svg.addEventListener("pointermove", (event) => {
    if (!from) return;
    if (!svg.hasPointerCapture(from.id)) svg.setPointerCapture(from.id);
    at.x -= (event.clientX - from.x) / at.scale;
    at.y -= (event.clientY - from.y) / at.scale;
    from = { ...from, x: event.clientX, y: event.clientY };
    hideTip();
    apply();
  });
  svg.addEventListener("pointerup", () => { from = null; });
  svg.addEventListener("pointercancel", () => { from = null; });
  frame.addEventListener("pointerleave", () => { if (!from) awake = false; });
  new ResizeObserver(() => requestAnimationFrame(apply)).observe(frame);
  const middle = (factor) => { const { width, height } = size(); zoom(factor, width / 2, height / 2); };
  return { fit, centre, below, closer: () => middle(1.4), wider: () => middle(1 / 1.4), isSmall: () => { const { width, height } = size(); return whole.width <= width * 1.6 && whole.height <= height * 1.6; } };
}
