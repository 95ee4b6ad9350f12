/** Lines of a table: each column as wide as its widest cell. @param head names of the columns */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [head, ...rows];
  const widths = head.map((_, at) => lines.reduce((most, cells) => Math.max(most, cells[at]!.length), 0));
  return lines.map((cells) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd(),
  );
}
