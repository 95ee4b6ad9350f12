import type { LinkRow, SplitRow } from './tables.ts';

/**
 * The chain of links from one identity to another of the same person: links that joined, and, where these leave a gap,
 * links of already joined identities. Null where the rows show no chain.
 */
export function findChain(rows: readonly LinkRow[], from: string, to: string): LinkRow[] | null {
  const joined = rows.filter(({ outcome }) => outcome === 'linked');
  return findWay(joined, from, to) ?? findWay(rows, from, to);
}

/** Links without those that a later unlink has undone by separating their two identities. */
export function withoutUndone(rows: readonly LinkRow[], sides: readonly SplitRow[]): LinkRow[] {
  const sidesOf = new Map<string, SplitRow[]>();
  for (const side of sides) sidesOf.set(side.key, [...(sidesOf.get(side.key) ?? []), side]);
  const isLater = (one: SplitRow, { place }: LinkRow) =>
    one.generation > place.generation || (one.generation === place.generation && one.offset > place.offset);
  const isParted = (row: LinkRow) =>
    (sidesOf.get(row.a.key) ?? []).some(
      (ofA) =>
        isLater(ofA, row) &&
        (sidesOf.get(row.b.key) ?? []).some(
          (ofB) => ofB.generation === ofA.generation && ofB.offset === ofA.offset && ofB.side !== ofA.side,
        ),
    );
  return rows.filter((row) => !isParted(row));
}

function findWay(rows: readonly LinkRow[], from: string, to: string): LinkRow[] | null {
  const linksAt = new Map<string, LinkRow[]>();
  for (const row of rows) for (const { key } of [row.a, row.b]) linksAt.set(key, [...(linksAt.get(key) ?? []), row]);
  const cameBy = new Map<string, { row: LinkRow; before: string } | null>([[from, null]]);
  for (const key of cameBy.keys())
    for (const row of linksAt.get(key) ?? []) {
      const next = row.a.key === key ? row.b.key : row.a.key;
      if (!cameBy.has(next)) cameBy.set(next, { row, before: key });
    }
  if (!cameBy.has(to)) return null;
  const chain: LinkRow[] = [];
  for (let came = cameBy.get(to); came; came = cameBy.get(came.before)) chain.unshift(came.row);
  return chain;
}
