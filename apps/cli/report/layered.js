// Layered drawing of a directed acyclic graph (Sugiyama, Tagawa, Toda 1981): layers by longest path, a bend on every layer that an
// edge crosses, order by barycentres, then places. The time is that of a fixed number of sweeps over boxes and bends.
//
//   layer 0     [ in ]
//                 │ ╲
//   layer 1    [ a ]  ·     a bend of the long edge in → b
//                 │  ╱
//   layer 2     [ b ]
const mostBends = 60000;

// boxes: {width, height}; edges: [from, to] with from < to. Adds x and y (the centre) to the boxes; returns {width, height, paths}:
// by edge its points.
function layOut(boxes, edges) {
  const gapX = 18, gapY = 30, margin = 16;
  const nodes = boxes.map((box) => ({ box, width: box.width, height: box.height, layer: 0, above: [], below: [], x: 0, order: 0 }));
  const bySource = edges.map((_, i) => i).sort((a, b) => edges[a][0] - edges[b][0]);
  for (const i of bySource) {
    const [from, to] = edges[i];
    nodes[to].layer = Math.max(nodes[to].layer, nodes[from].layer + 1);
  }
  let bends = 0;
  const chains = edges.map(([from, to]) => {
    const chain = [nodes[from]];
    for (let layer = nodes[from].layer + 1; layer < nodes[to].layer && bends < mostBends; ++layer, ++bends) {
      const bend = { width: 6, height: 0, layer, above: [], below: [], x: 0, order: 0 };
      nodes.push(bend);
      chain.push(bend);
    }
    chain.push(nodes[to]);
    for (let i = 0; i + 1 < chain.length; ++i) {
      chain[i].below.push(chain[i + 1]);
      chain[i + 1].above.push(chain[i]);
    }
    return chain;
  });
  const layers = [];
  for (const node of nodes) (layers[node.layer] ??= []).push(node);
  const walk = (down, visit) => { for (let i = 0; i < layers.length; ++i) visit(layers[down ? i : layers.length - 1 - i]); };
  const mean = (list, key, otherwise) => (list.length === 0 ? otherwise : list.reduce((total, one) => total + one[key], 0) / list.length);

  for (let sweep = 0; sweep < 8; ++sweep) {
    const down = sweep % 2 === 0;
    for (const layer of layers) layer.forEach((node, i) => { node.order = i; });
    walk(down, (layer) => {
      for (const node of layer) node.wish = mean(down ? node.above : node.below, "order", node.order);
      layer.sort((a, b) => a.wish - b.wish || a.order - b.order);
      layer.forEach((node, i) => { node.order = i; });
    });
  }
  const apart = (left, right) => (left.width + right.width) / 2 + gapX;
  for (const layer of layers) {
    let x = 0;
    layer.forEach((node, i) => { if (i > 0) x += apart(layer[i - 1], node); node.x = x; });
    for (const node of layer) node.x -= x / 2;
  }
  // Each layer towards its neighbours: from the left and from the right as far as the order lets, then the mean of both.
  for (let sweep = 0; sweep < 12; ++sweep) {
    const down = sweep % 2 === 0;
    walk(down, (layer) => {
      const left = layer.map((node) => mean(down ? node.above : node.below, "x", node.x));
      const right = [...left];
      for (let i = 1; i < layer.length; ++i) left[i] = Math.max(left[i], left[i - 1] + apart(layer[i - 1], layer[i]));
      for (let i = layer.length - 1; i > 0; --i) right[i - 1] = Math.min(right[i - 1], right[i] - apart(layer[i - 1], layer[i]));
      layer.forEach((node, i) => { node.x = (left[i] + right[i]) / 2; });
    });
  }
  let leftmost = Infinity, rightmost = -Infinity, y = margin;
  for (const node of nodes) {
    leftmost = Math.min(leftmost, node.x - node.width / 2);
    rightmost = Math.max(rightmost, node.x + node.width / 2);
  }
  for (const layer of layers) {
    const height = layer.reduce((most, node) => Math.max(most, node.height), 0);
    for (const node of layer) {
      node.y = y + height / 2;
      node.x += margin - leftmost;
    }
    y += height + gapY;
  }
  for (const node of nodes) if (node.box) { node.box.x = node.x; node.box.y = node.y; }
  const paths = chains.map((chain) => chain.map((node, i) => ({
    x: node.x, y: node.y + (i === 0 ? node.height / 2 : i === chain.length - 1 ? -node.height / 2 : 0),
  })));
  return { width: Math.max(rightmost - leftmost, 0) + 2 * margin, height: Math.max(y - gapY, 0) + margin, paths };
}

// Vertical at every bend, so that the pieces meet smoothly.
function pathText(points) {
  let text = `M${points[0].x.toFixed(1)},${points[0].y.toFixed(1)}`;
  for (let i = 1; i < points.length; ++i) {
    const [a, b] = [points[i - 1], points[i]];
    const middle = (a.y + b.y) / 2;
    text += `C${[a.x, middle, b.x, middle, b.x, b.y].map((v) => v.toFixed(1)).join(" ")}`;
  }
  return text;
}
