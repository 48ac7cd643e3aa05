// A table whose columns sort. Long ones begin with their first rows: a browser should not lay out what nobody reads.
const rowsAtFirst = 300;

// columns: {title, cell(row) → text or nodes, value(row) → what sorts, right, name, wide, hint}; options: {sort: column index,
// down, decorate(tr, row), label, empty}.
function sortedTable(columns, rows, options = {}) {
  let by = options.sort ?? -1;
  let down = options.down ?? false;
  let all = rows.length <= rowsAtFirst + 50;
  let kept = rows;
  const body = el("tbody");
  const more = el("button", { class: "more-rows", type: "button", onclick: () => { all = true; show(); } });
  const heads = columns.map((column, i) => {
    const click = () => {
      down = by === i ? !down : Boolean(column.right);
      by = i;
      show();
    };
    return el("th", { class: column.right && "right", scope: "col", title: column.hint },
      column.value ? el("button", { type: "button", onclick: click }, column.title) : column.title);
  });

  function compare(a, b) {
    const [x, y] = [columns[by].value(a), columns[by].value(b)];
    const order = typeof x === "string" ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity);
    return down ? -order : order;
  }

  function show() {
    const sorted = by < 0 ? kept : [...kept].sort(compare);
    heads.forEach((head, i) => {
      if (!columns[i].value) return;
      head.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending");
      head.firstChild.textContent = columns[i].title + (i !== by ? "" : down ? " ▾" : " ▴");
    });
    const shown = all ? sorted : sorted.slice(0, rowsAtFirst);
    body.replaceChildren(...shown.map((row) => {
      const line = el("tr", null, columns.map((column) =>
        el("td", { class: [column.right && "right", column.name && "name mono", column.wide && "wide"].filter(Boolean).join(" ") || null },
          column.cell(row))));
      if (options.decorate) options.decorate(line, row);
      return line;
    }));
    if (shown.length === 0) body.append(el("tr", null, el("td", { colspan: columns.length, class: "soft" }, options.empty || "none")));
    more.hidden = shown.length === sorted.length;
    more.textContent = `Show all ${sorted.length.toLocaleString("en")} rows`;
  }

  const table = el("table", { "aria-label": options.label }, el("thead", null, el("tr", null, heads)), body);
  show();
  const whole = el("div", null, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label }, table), more);
  whole.keep = (test) => { kept = test ? rows.filter(test) : rows; show(); };
  whole.showAll = () => { if (!all) { all = true; show(); } };
  return whole;
}

// A search field that keeps the rows in which one of the words stands.
function filterOf(table, label, words) {
  return el("input", {
    type: "search", placeholder: label, "aria-label": label,
    oninput: (event) => {
      const wanted = event.target.value.trim().toLowerCase();
      table.keep(wanted === "" ? null : (row) => words(row).some((word) => word.toLowerCase().includes(wanted)));
    },
  });
}

const bar = (share, kind) => el("span", { class: "bar", "aria-hidden": "true" },
  el("i", { class: kind, style: `width:${Math.min(100, Math.max(0, 100 * share)).toFixed(1)}%` }));
