import { atMost, type Row, toRow } from '../figure.ts';
import type { AnalystQuery } from './basic.ts';
import type { ColdAndWarm } from './run-query.ts';

export interface QueryResults {
  readonly query: AnalystQuery;
  readonly raw: ColdAndWarm;
  readonly exact: ColdAndWarm | undefined;
  readonly identified: ColdAndWarm;
  readonly peer: ColdAndWarm;
}

const MEGA = 1e6;

function describeCount(count: number): string {
  if (count >= MEGA) return `${(count / MEGA).toFixed(1)} M`;
  return count >= 1e3 ? `${Math.round(count / 1e3)} k` : String(count);
}

function describe({ coldMs, warm, memoryBytes, cpuMs }: ColdAndWarm): string {
  const megabytes = (bytes: number) => (bytes / MEGA).toFixed(bytes < 10 * MEGA ? 1 : 0);
  return `cold ${Math.round(coldMs)} ms, CPU ${Math.round(cpuMs)} ms, ${describeCount(warm.readRows)} rows, ${megabytes(warm.readBytes)} MB read, memory ${megabytes(memoryBytes)} MB`;
}

export function toQueryRows({ query, raw, exact, identified, peer }: QueryResults): Row[] {
  const row = (kind: string, own: ColdAndWarm, [name, other]: readonly [string, ColdAndWarm]) => ({
    case: `${query.name}, ${kind}`,
    unit: 'ms',
    value: own.warm.ms,
    peer: name,
    peerValue: other.warm.ms,
    notes: `${describe(own)}; peer ${describe(other)}`,
  });
  const rawRows = ['raw rows', raw] as const;
  const ofDay = query.isOfDay ? [atMost('ratio', 3, 1.5)] : [];
  const rows = [
    ...(exact === undefined ? [] : [toRow({ ...row('exact', exact, rawRows), bars: ofDay })]),
    toRow({ ...row('identified', identified, rawRows), bars: [...ofDay, ...(query.bars ?? [])] }),
    toRow(row('identified', identified, ['the peer', peer])),
  ];
  if (query.readRowsBar === undefined) return rows;
  const readRow = { ...row('identified', identified, rawRows), unit: 'rows read', value: identified.warm.readRows };
  return [...rows, toRow({ ...readRow, peerValue: raw.warm.readRows, bars: [query.readRowsBar], notes: '' })];
}

export function toMemoryRow(results: readonly QueryResults[]): Row {
  const largest = (of: (one: QueryResults) => readonly (ColdAndWarm | undefined)[]) => {
    const used = results.flatMap((one) =>
      of(one).map((run) => ({ name: one.query.name, mb: (run?.memoryBytes ?? 0) / MEGA })),
    );
    return used.reduce((most, one) => (one.mb > most.mb ? one : most));
  };
  const own = largest(({ exact, identified }) => [exact, identified]);
  const raw = largest((one) => [one.raw]);
  const peer = largest((one) => [one.peer]);
  return toRow({
    case: 'most memory of any query',
    unit: 'MB',
    value: own.mb,
    bars: [atMost('value', 500, 200)],
    peer: 'raw rows',
    peerValue: raw.mb,
    notes: `${own.name}; raw: ${raw.name}; the peer ${Math.round(peer.mb)} MB: ${peer.name}`,
  });
}
