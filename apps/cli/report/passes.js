// The passes: a list to choose from, and what the chosen one made of the graph.
function passesSection(data) {
  const passes = data.passes;
  if (!passes) {
    section("passes", "Passes", el("p", { class: "note" },
      "This report is of an engine, which holds what the passes made and not how. Give the model itself to see the graph before and after each pass."));
    return;
  }
  const panes = el("div", { class: "panes" });
  const tools = el("div", { class: "tools" });
  const words = el("div");
  const line = el("pre", { class: "lines", "aria-live": "polite", hidden: true });
  let withConstants = false;
  let chosen = -1;
  const entries = [{ ...passes.all, name: "all passes together", why: "the model as imported, and what lowering gets", ran: true, changed: true }, ...passes.table];

  const buttons = entries.map((pass, i) => el("button", { type: "button", class: pass.changed ? "changed" : "quiet", onclick: () => choose(i) },
    el("span", { class: "soft right" }, i > 0 ? String(i) : "Σ"),
    el("span", { class: "title" }, pass.name),
    el("span", { class: "right soft" }, !pass.ran ? "not run" : pass.seconds === undefined ? "" : timeText(pass.seconds)),
    pass.changed && el("span", { class: "under" }, changesText(pass))));
  const list = el("ol", { class: "pass-list", "aria-label": "Passes in the order in which they run" }, buttons.map((button) => el("li", null, button)));
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(Math.min(entries.length - 1, Math.max(0, chosen + step)));
    buttons[chosen].focus();
  });

  function choose(i) {
    chosen = i;
    buttons.forEach((button, at) => (at === i ? button.setAttribute("aria-current", "true") : button.removeAttribute("aria-current")));
    showPass(entries[i]);
    const [top, bottom] = [buttons[i].offsetTop - list.offsetTop, buttons[i].offsetTop - list.offsetTop + buttons[i].offsetHeight];
    if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
    list.dataset.chosen = entries[i].name;
  }

  function showPass(pass) {
    words.replaceChildren(...passWords(pass, passes.nodes));
    panes.replaceChildren();
    tools.replaceChildren();
    line.hidden = true;
    const graphs = [passes.graphs[pass.from], passes.graphs[pass.to]];
    if (!pass.changed) return;
    if (!graphs[0] || !graphs[1]) {
      panes.append(el("p", { class: "note" }, `A graph of ${Math.max(pass.before, pass.after).toLocaleString("en")} nodes is not drawn: what changed stands below as text.`));
      return;
    }
    const removed = new Map([...pass.removed.map((n) => [n, "removed"]), ...pass.altered.map(([n]) => [n, "changed"])]);
    const added = new Map([...pass.added.map((n) => [n, "added"]), ...pass.altered.map(([, n]) => [n, "changed"])]);
    const partner = new Map([...pass.altered.flatMap(([a, b]) => [[a, b], [b, a]])]);
    const pick = (index) => {
      views.forEach((view) => view.choose(index));
      views.forEach((view) => { if (partner.has(index)) view.show(partner.get(index)); });
      if (partner.has(index)) views.forEach((view) => view.choose(partner.get(index)));
      line.hidden = false;
      line.textContent = partner.has(index) ? `${passes.nodes[Math.min(index, partner.get(index))].text}\n${passes.nodes[Math.max(index, partner.get(index))].text}` : passes.nodes[index].text;
    };
    const views = [graphView("before", graphs[0], passes.nodes, removed, withConstants, pick), graphView("after", graphs[1], passes.nodes, added, withConstants, pick)];
    const captions = [`before: ${plural(pass.before, "node")}`, `after: ${plural(pass.after, "node")}`];
    panes.append(...views.map((view, at) => el("div", { class: "pane" }, el("h4", null, captions[at]), view.frame)));
    const both = (act) => () => views.forEach(act);
    const button = (text, hint, act, pressed) => el("button", { type: "button", title: hint, "aria-label": hint, "aria-pressed": pressed, onclick: act }, text);
    tools.append(
      el("span", null, el("span", { class: "key removed" }, "− removed"), " ", el("span", { class: "key added" }, "+ added"), " ", el("span", { class: "key changed" }, "~ changed")),
      button("+", "Enlarge", both((view) => view.view.closer())), button("−", "Reduce", both((view) => view.view.wider())),
      button("whole graph", "Show the whole graphs", both((view) => view.view.fit())),
      button("next change", "Go to the next node that changed", both((view) => view.goOn())),
      button("constants", "Draw weights and numbers as well", () => { withConstants = !withConstants; showPass(pass); }, String(withConstants)),
      el("span", { class: "soft" }, "drag to move; click, then turn the wheel to enlarge"));
    for (const view of views) {
      if (view.view.isSmall() || view.count === 0) view.view.fit();
      else view.begin();
    }
  }

  section("passes", "Passes",
    el("p", { class: "lead" }, "The graph goes through these passes from top to bottom; choose one, or walk with the arrow keys. " +
      "Constants, and what is computed from them alone, are not counted as nodes, and not drawn unless asked for."),
    el("div", { class: "passes" }, list, el("div", { class: "pane" }, tools, panes, line, words)));
  choose(0);
}

function changesText(pass) {
  const parts = [];
  if (pass.before !== pass.after) parts.push(`${pass.before} → ${plural(pass.after, "node")}`);
  const counts = [[pass.removed_count, "−"], [pass.added_count, "+"], [pass.altered_count, "~"]].filter(([count]) => count > 0);
  parts.push(counts.length > 0 ? counts.map(([count, sign]) => `${sign}${count}`).join(" ") : "layouts or order only");
  return parts.join(", ");
}

// The changes as lines; constants among them, since folding is mostly about those.
function passWords(pass, pool) {
  if (!pass.ran) return [el("p", { class: "note" }, `${pass.name} did not run: it was left out, or stands behind the last pass.`)];
  const lines = [];
  const add = (kind, sign, index) => lines.push(el("span", { class: kind }, `${sign} ${pool[index].text}\n`));
  for (const [before, after] of pass.altered) {
    add("removed", "−", before);
    add("added", "+", after);
  }
  for (const index of pass.removed) add("removed", "−", index);
  for (const index of pass.added) add("added", "+", index);
  const total = pass.removed_count + pass.added_count + 2 * pass.altered_count;
  const cut = total > lines.length ? `, the first ${lines.length} of them` : "";
  const touched = [...pass.removed, ...pass.added, ...pass.altered.flat()];
  const quiet = !pass.changed ? "It changed nothing here." : touched.length > 0 && touched.every((index) => pool[index].constant)
    ? "Only constants changed here: “constants” above draws them." : "";
  return [
    el("p", null, el("b", null, pass.name), `: ${pass.why}. ${quiet}`),
    pass.changed && lines.length > 0 && el("details", { open: lines.length <= 14 || undefined },
      el("summary", null, `${plural(total, "line")} of the text form${cut}`), el("pre", { class: "lines" }, lines)),
  ].filter(Boolean);
}
