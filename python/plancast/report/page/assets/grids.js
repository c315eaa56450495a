"use strict";
// Tables of pages that have rows to sort and search and nothing to select.
plancast.starts.push(() => {
  for (const grid of plancast.data.grids || []) {
    const columns = grid.columns.map((column) => ({
      ...column, text: column.texts.length ? (row) => column.texts[row] : undefined,
    }));
    const count = columns[0].values.length;
    const place = document.getElementById(grid.id);
    const options = { pageSize: grid.pageSize, most: 0, breaks: true };
    const table = new DataTable(place, columns, count, options);
    const search = document.querySelector(`input[data-grid="${grid.id}"]`);
    if (search === null) continue;
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const said = (row) => columns.map((c) => String(c.text ? c.text(row) : c.values[row]))
        .join(" ").toLowerCase();
      table.filter((row) => words.every((word) => said(row).includes(word)));
    });
  }
});
