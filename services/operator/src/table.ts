/** Lines of a table: each column as wide as its widest cell. @param head names of the columns */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [head, ...rows];
  const widths = head.map((_, at) =>
    lines.map((cells) => cells[at]!.length).reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY),
  );
  return lines.map((cells) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd(),
  );
}
