"use strict";
// A table of many rows to sort, filter and select; a page of rows at a time.
class DataTable {
  // `columns`: {label, values, text(i), number, about, screen}; rows are indices into their values.
  // Those of the `screen` are not printed.
  constructor(place, columns, count, {
    pageSize = 50, most = 2, breaks = false, changed = () => {},
  } = {}) {
    Object.assign(this, { place, columns, count, pageSize, most, breaks, changed });
    this.page = 0;
    this.sorted = { column: null, down: false };
    this.selected = [];
    this.keep = () => true;
    this.build();
    this.update();
  }

  build() {
    this.place.innerHTML = "<div class=scroll><table><thead><tr></tr></thead><tbody></tbody>"
      + "</table></div><div class=pager><button class=back>‹ back</button>"
      + "<span class=where></span><button class=on>on ›</button></div>";
    const head = this.place.querySelector("thead tr");
    if (this.most) head.append(document.createElement("th"));
    this.columns.forEach((column, at) => {
      const cell = document.createElement("th");
      const button = document.createElement("button");
      button.className = "sort";
      button.textContent = column.label;
      if (column.about) button.title = column.about;
      button.addEventListener("click", () => this.sortBy(at));
      cell.className = DataTable.kind(column);
      cell.append(button);
      head.append(cell);
    });
    this.place.querySelector(".back").addEventListener("click", () => this.turn(-1));
    this.place.querySelector(".on").addEventListener("click", () => this.turn(1));
  }

  static kind(column) {
    return [column.number && "n", column.screen && "screen"].filter(Boolean).join(" ");
  }

  sortBy(at) {
    const same = this.sorted.column === at;
    this.sorted = { column: at, down: same && !this.sorted.down };
    this.page = 0;
    this.update();
  }

  turn(pages) {
    this.page += pages;
    this.paint();
  }

  filter(keep) {
    this.keep = keep;
    this.page = 0;
    this.update();
  }

  // Rows that pass the filter, in the order of the sorted column.
  update() {
    this.rows = [];
    for (let row = 0; row < this.count; row += 1) if (this.keep(row)) this.rows.push(row);
    const { column, down } = this.sorted;
    if (column !== null) {
      const { values } = this.columns[column];
      const sign = down ? -1 : 1;
      this.rows.sort((a, b) => {
        const [x, y] = [values[a], values[b]];
        if (x === null || y === null) return (x === null) - (y === null);
        const first = typeof x === "number" && typeof y === "number"
          ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return sign * first || a - b;
      });
    }
    this.paint();
  }

  paint() {
    const last = Math.max(0, Math.ceil(this.rows.length / this.pageSize) - 1);
    this.page = Math.max(0, Math.min(last, this.page));
    const begin = this.page * this.pageSize;
    const body = this.place.querySelector("tbody");
    body.replaceChildren(...this.rows.slice(begin, begin + this.pageSize).map((r) => this.line(r)));
    const shown = Math.min(this.rows.length, begin + this.pageSize);
    this.place.querySelector(".where").textContent = this.rows.length
      ? ` ${(begin + 1).toLocaleString("en")}–${shown.toLocaleString("en")} of ${this.rows.length.toLocaleString("en")} ` : " none ";
    this.place.querySelector(".pager").hidden = this.count <= this.pageSize;
    this.place.querySelector(".back").disabled = this.page === 0;
    this.place.querySelector(".on").disabled = this.page === last;
    this.place.querySelectorAll("thead th").forEach((cell, at) => {
      const mine = at - (this.most ? 1 : 0) === this.sorted.column;
      if (mine) cell.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }

  line(row) {
    const line = document.createElement("tr");
    line.dataset.row = row;
    if (this.most) {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = this.selected.includes(row);
      box.setAttribute("aria-label", "select");
      box.addEventListener("change", () => this.toggle(row));
      const cell = document.createElement("td");
      cell.append(box);
      const letter = this.selected.indexOf(row);
      if (letter >= 0) {
        line.className = "chosen";
        cell.append(` ${"AB"[letter] || letter + 1}`);
      }
      line.append(cell);
    }
    for (const column of this.columns) {
      const cell = document.createElement("td");
      const text = column.text ? column.text(row) : String(column.values[row] ?? "");
      cell.className = DataTable.kind(column);
      // Long words, as those of plans are, break behind their commas.
      const long = this.breaks && !column.number && text.length > 22;
      const pieces = long ? text.split(/(?<=,)(?=\S)/) : [text];
      pieces.forEach((piece, at) => {
        if (at) cell.append(document.createElement("wbr"));
        cell.append(piece);
      });
      line.append(cell);
    }
    return line;
  }

  // The oldest goes where one too many is selected.
  toggle(row) {
    if (this.selected.includes(row)) this.selected = this.selected.filter((one) => one !== row);
    else this.selected = [...this.selected, row].slice(-this.most);
    this.paint();
    this.changed(this.selected);
  }
}
