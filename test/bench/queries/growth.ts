import type { Engine } from '../clickhouse.ts';
import { atMost, type Row, toRow } from '../figure.ts';
import type { AnalystQuery } from './basic.ts';
import { runOnce } from './run-query.ts';

export type ReadOfDay = ReadonlyMap<string, { readonly rows: number; readonly ms: number }>;

export async function readOfDay(engine: Engine, queries: readonly AnalystQuery[]): Promise<ReadOfDay> {
  const read = new Map<string, { rows: number; ms: number }>();
  for (const { name, isOfDay, exact, identified } of queries) {
    if (!isOfDay) continue;
    for (const [kind, sql] of Object.entries({ exact, identified })) {
      if (sql === undefined) continue;
      const { readRows, ms } = await runOnce(engine, sql);
      read.set(`${name}, ${kind}`, { rows: readRows, ms });
    }
  }
  return read;
}

/** Rows that compare the same queries about the same day, before and after history has grown five times. */
export function toGrowthRows(before: ReadOfDay, after: ReadOfDay): Row[] {
  return [...after].map(([name, { rows, ms }]) => {
    const then = before.get(name) ?? { rows: Number.NaN, ms: Number.NaN };
    return toRow({
      case: `${name}, of an old day`,
      unit: 'rows read',
      value: rows,
      peer: 'with a fifth of the history',
      peerValue: then.rows,
      bars: [atMost('ratio', 1.2)],
      notes: `one run each: ${ms.toFixed(1)} and ${then.ms.toFixed(1)} ms`,
    });
  });
}
