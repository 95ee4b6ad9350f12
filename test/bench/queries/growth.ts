import type { Engine } from '../clickhouse.ts';
import { type Bar, type Row, toRow } from '../figure.ts';
import { askOnce } from './ask.ts';
import type { Question } from './questions.ts';

const UNCHANGED: readonly Bar[] = [{ of: 'ratio', bound: 'at most', must: 1.2 }];

/** What our queries about one day read, by query and kind. */
export type ReadOfDay = ReadonlyMap<string, { readonly rows: number; readonly ms: number }>;

export async function readOfDay(engine: Engine, questions: readonly Question[]): Promise<ReadOfDay> {
  const read = new Map<string, { rows: number; ms: number }>();
  for (const { name, isOfDay, exact, identified } of questions) {
    if (!isOfDay) continue;
    for (const [kind, sql] of Object.entries({ exact, identified })) {
      if (sql === undefined) continue;
      const { readRows, ms } = await askOnce(engine, sql);
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
      figure: 'queries',
      case: `${name}, of an old day`,
      unit: 'rows read',
      ours: rows,
      beside: 'with a fifth of the history',
      theirs: then.rows,
      bars: UNCHANGED,
      also: `asked once each: ${ms.toFixed(1)} ms, then ${then.ms.toFixed(1)} ms`,
    });
  });
}
