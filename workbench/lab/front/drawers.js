// Tables and code in native disclosures, which keep their state while the content changes. A click on a heading, or Enter,
// sorts; a click on a row, or Enter on its first cell, chooses it.

import { element } from "./dom.js";

const COLLATOR = new Intl.Collator(undefined, { numeric: true });

// Numbers in texts like "1,024", "8.1 %", "+0.3" or "∞"; NaN for other texts.
function number(text) {
  const bare = text.replaceAll(",", "").replace("∞", "Infinity").replace(/%\s*$/, "").trim();
  return bare === "" ? NaN : Number(bare);
}

function compare(one, other) {
  const [a, b] = [number(one), number(other)];
  if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1; // texts after numbers
  return Number.isNaN(a) ? COLLATOR.compare(one, other) : a === b ? 0 : a - b;
}

// Scrolls a table in a low place so that the chosen row is between its head and its foot, unless it is there already.
function reveal(place, table) {
  const row = table.querySelector("tr.chosen")?.getBoundingClientRect();
  if (!row) return;
  const top = table.tHead.getBoundingClientRect().bottom;
  const bottom = table.tFoot?.getBoundingClientRect().top ?? place.getBoundingClientRect().bottom;
  place.scrollTop += Math.min(row.top - top, 0) || Math.max(row.bottom - bottom, 0);
}

// Emphasises another row of a table that is otherwise the same.
function choose(place, table) {
  for (const line of place.querySelectorAll("tbody tr")) {
    const chosen = Number(line.dataset.row) === table.chosen;
    line.classList.toggle("chosen", chosen);
    if (chosen) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  }
}

// A place for a table that is always open.
class Stand {
  constructor() {
    this.box = this.inside = element("div", "wb-stand wb-sideways");
    this.title = {};
  }
}

class Drawer {
  constructor(title, parent) {
    this.box = element("details", "wb-drawer", parent);
    this.box.addEventListener("toggle", () => this.box.open && this.opened?.());
    this.title = element("summary", "", this.box, title);
    this.inside = element("div", "wb-sideways", this.box);
  }
}

export class Drawers {
  constructor(channel, el) {
    this.channel = channel;
    this.el = el;
    this.drawers = new Map();
    this.sorted = new Map(); // by the name of a table: column and direction
    this.code = channel.content.bare ? null : new Drawer("code", el);
  }

  show({ tables, code: text }) {
    const names = new Set(tables.map(({ name }) => name));
    for (const [name, { drawer }] of this.drawers) {
      if (names.has(name)) continue;
      drawer.box.remove();
      this.drawers.delete(name);
    }
    for (const table of tables) {
      const described = JSON.stringify({ ...table, chosen: null });
      const held = this.drawers.get(table.name) ?? { drawer: this.code ? new Drawer("", null) : new Stand() };
      this.drawers.set(table.name, held);
      const { box } = held.drawer;
      if (box.parentElement !== this.el) this.el.insertBefore(box, this.code?.box ?? null); // one that moves loses the focus
      held.drawer.title.textContent = table.title;
      held.drawer.opened = () => {
        if (held.text !== described) this.fill(held.drawer.inside, table);
        else if (held.chosen !== table.chosen) this.emphasise(held.drawer.inside, table);
        [held.text, held.chosen] = [described, table.chosen];
      };
      if (!this.code || box.open) held.drawer.opened(); // rows of a closed drawer are made when it is opened
    }
    if (!this.code) return;
    this.code.inside.replaceChildren(element("pre", "", null, { textContent: text, tabIndex: 0 })); // so that keys scroll it
  }

  fill(place, table) {
    const focus = place.contains(document.activeElement) ? document.activeElement.dataset.place : null;
    const made = element("table", "wb-table", null, { "aria-label": table.title });
    const head = element("tr", "", element("thead", "", made));
    table.columns.forEach((name, column) => this.heading(head, table, name, column, place));
    const body = element("tbody", "", made);
    for (const row of this.order(table)) this.row(body, table, row);
    if (table.foot.length) {
      const line = element("tr", "", element("tfoot", "", made));
      table.foot.forEach((text, column) => element("td", table.numeric[column] ? "number" : "", line, text));
    }
    const { scrollTop, scrollLeft } = place;
    place.replaceChildren(made);
    this.emphasise(place, table);
    Object.assign(place, { scrollTop, scrollLeft });
    if (focus) made.querySelector(`[data-place="${focus}"]`)?.focus();
  }

  emphasise(place, table) {
    choose(place, table);
    if (!this.code) requestAnimationFrame(() => reveal(place, place.firstElementChild)); // once it has a place on the page
  }

  heading(head, table, name, column, place) {
    const cell = element("th", table.numeric[column] ? "number" : "", head, { scope: "col" });
    const { column: sorted, down } = this.sorted.get(table.name) ?? {};
    if (sorted === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    if (!name) return;
    const button = element("button", "", cell, { type: "button", textContent: name, "data-place": `head-${column}` });
    button.addEventListener("click", () => {
      this.sorted.set(table.name, { column, down: sorted === column && !down });
      this.fill(place, table);
    });
  }

  order(table) {
    const rows = table.rows.map((_, row) => row);
    const by = this.sorted.get(table.name);
    if (!by) return rows;
    const sign = by.down ? -1 : 1;
    return rows.sort((a, b) => sign * compare(table.rows[a][by.column] ?? "", table.rows[b][by.column] ?? "") || a - b);
  }

  row(body, table, row) {
    const line = element("tr", "", body);
    line.dataset.row = row;
    const action = table.fixed.includes(row) ? "" : table.action;
    table.rows[row].forEach((text, column) => {
      const cell = element("td", table.numeric[column] ? "number" : "", line);
      if (column > 0 || !action) {
        cell.textContent = text;
        if (!this.code) cell.title = text; // which may be cut
        return;
      }
      element("button", "", cell, { type: "button", textContent: text, title: action, "data-place": `row-${row}` });
    });
    if (!action) return;
    line.classList.add("wb-choosable");
    line.addEventListener("click", () => this.channel.send({ table: table.name, row }));
  }
}
