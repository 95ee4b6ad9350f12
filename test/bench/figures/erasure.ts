import { FENCES_KNOWN_WITHIN_MS } from '@playline/erasure';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { createEngine } from '../clickhouse.ts';
import {
  type Bystanders,
  type Erased,
  eraseRange,
  INGEST,
  measureRemoval,
  type Phases,
  phasesOf,
  type Removal,
  type ResponseTimes,
  type Scene,
  shortenCleanups,
  watchBystanders,
} from '../erasure/erase.ts';
import { DAYS, fillEvents, linkPeople, NAMES } from '../erasure/people.ts';
import { atMost, type Bench, type Figure, type Row, scaled, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { medianOf, quantileOf } from '../quantile.ts';
import { groupOf, startGateway, startService, startWriter } from '../services.ts';

const SINGLE_REQUESTS = 5;
const REQUESTS = 1_000;
const BATCH_WINDOW_MS = 2_000;

// Erases a few people one by one, then 1,000 concurrently, while messages arrive and an analyst runs queries.
export const erasure: Figure = {
  name: 'erasure',
  optional: true,
  measure: (bench) =>
    withOpened(async (keep) => {
      const engine = createEngine(bench);
      await shortenCleanups(engine);
      const people = await fillEvents(bench);
      const { user, url, password } = bench.stores.clickhouse;
      const target = { url, user, password, database: bench.database };
      const [rows, records] = [keep(openErasureRows(target)), keep(openErasureRecords(target))];
      keep(await startWriter(bench));
      keep(await startService(bench, 'identity-linker'));
      const scene: Scene = { bench, server: keep(await startGateway(bench)), people, rows, records };
      await linkPeople(bench, people);
      const tableBytes = await engine.queryNumber(
        `SELECT sum(data_uncompressed_bytes) FROM system.parts
         WHERE database = currentDatabase() AND active AND table = 'events'`,
      );
      return measureErasures(scene, tableBytes);
    }),
};

async function measureErasures(scene: Scene, tableBytes: number): Promise<Row[]> {
  const { bench, people } = scene;
  const count = scaled(bench, REQUESTS);
  const single = await withEraser(bench, () =>
    watchBystanders(scene, async () => {
      const erased: Erased[] = [];
      for (let person = 0; person < SINGLE_REQUESTS; person++)
        erased.push(await eraseRange(scene, { first: person, count: 1 }));
      return erased;
    }),
  );
  const many = await withEraser(bench, () =>
    watchBystanders(scene, () => eraseRange(scene, { first: SINGLE_REQUESTS, count })),
  );
  const removal = await measureRemoval(bench, scene, SINGLE_REQUESTS + count);
  const queued = `${many.result.receipts.length} concurrent requests`;
  const manyWithName = { ...many.result, name: queued };
  return [
    ...timeRows(single.result, manyWithName),
    ...costRows(single.result, manyWithName, { rows: people.rows, tableBytes }),
    ...bystanderRows('sequential requests', single.bystanders),
    ...bystanderRows(queued, many.bystanders),
    removalRow(many.result, removal),
  ];
}

// Each measurement starts a new eraser, because an eraser rewrites files once it has run for five minutes.
const withEraser = <T>(bench: Bench, work: () => Promise<T>): Promise<T> =>
  withOpened(async (keep) => {
    const groups = { LINKER_GROUP: groupOf(bench, 'identity-linker'), WRITER_GROUP: groupOf(bench, 'event-writer') };
    keep(await startService(bench, 'eraser', groups));
    return work();
  });

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;

type Named = Erased & { readonly name: string };

function timeRows(singles: readonly Erased[], many: Named): Row[] {
  const unit = 'ms from acceptance to visible erasure';
  const [alone, queued] = [singles.flatMap(({ receipts }) => receipts.map(phasesOf)), many.receipts.map(phasesOf)];
  const totals = queued.map(({ total }) => total);
  const aloneMs = medianOf(alone.map(({ total }) => total));
  const of = { case: many.name, peer: 'one request', peerValue: aloneMs };
  return [
    toRow({
      case: `one request, median of ${SINGLE_REQUESTS}`,
      unit,
      value: aloneMs,
      peer: 'floor: the fixed waits for more requests and for fences',
      peerValue: BATCH_WINDOW_MS + FENCES_KNOWN_WITHIN_MS,
      bars: [atMost('value', 60_000, 10_000)],
      notes: describe(alone),
    }),
    toRow({ ...of, unit: `p50 ${unit}`, value: quantileOf(totals, 0.5), notes: describe(queued) }),
    toRow({
      ...of,
      unit: `p99 ${unit}`,
      value: quantileOf(totals, 0.99),
      bars: [atMost('value', 60_000, 20_000)],
      notes: `longest ${seconds(Math.max(...totals))}; all accepted within ${seconds(many.acceptedMs)}`,
    }),
  ];
}

function describe(phases: readonly Phases[]): string {
  const median = (name: keyof Phases) => seconds(medianOf(phases.map((each) => each[name])));
  return `fenced after ${median('fence')}, log processed ${median('log')} later, rows deleted in ${median('deletion')}`;
}

function costRows(singles: readonly Erased[], many: Named, table: { rows: number; tableBytes: number }): Row[] {
  const median = (of: 'readBytes' | 'cpuMs' | 'events') => medianOf(singles.map((each) => each[of]));
  return [
    toRow({
      case: `one person with ${median('events')} rows over ${NAMES} names and ${DAYS} days, among ${table.rows / 1e6} million`,
      unit: 'bytes read',
      value: median('readBytes'),
      peer: 'the whole table',
      peerValue: table.tableBytes,
      bars: [atMost('ratio', 0.1)],
      notes: `${singles.map((each) => megabytes(each.readBytes)).join(', ')} of ${megabytes(table.tableBytes)}; ${many.name}: ${megabytes(many.readBytes)}`,
    }),
    toRow({
      case: many.name,
      unit: 'engine CPU-ms per request',
      value: many.cpuMs / many.receipts.length,
      peer: 'one request',
      peerValue: median('cpuMs'),
      notes: `${many.events} events, ${seconds(many.cpuMs)} CPU in total`,
    }),
  ];
}

function bystanderRows(label: string, { quiet, busy }: Bystanders): Row[] {
  const names: Record<keyof ResponseTimes, string> = {
    gateway: `responses to ${INGEST.requestsPerSecond} batches of ${INGEST.batchSize} per second`,
    analyst: 'responses to an analyst',
  };
  return (Object.keys(names) as (keyof ResponseTimes)[]).map((client) =>
    toRow({
      case: `${label}: ${names[client]}`,
      unit: 'p99 ms',
      value: busy[client].p99,
      peer: 'without erasures, immediately before',
      peerValue: quiet[client].p99,
      notes: `p50 ${busy[client].p50.toFixed(1)} and ${quiet[client].p50.toFixed(1)}; ${busy[client].responses} and ${quiet[client].responses} responses`,
    }),
  );
}

function removalRow({ events }: Erased, { ms, writtenMs, searchedMs, waitedMs, cpuSeconds, idleMs }: Removal): Row {
  return toRow({
    case: `${events} deleted rows removed from all files`,
    unit: 'ms',
    value: ms,
    peer: 'a repetition with nothing to remove',
    peerValue: idleMs,
    notes: `${cpuSeconds.toFixed(1)} CPU-s; written ${seconds(writtenMs)}, searched ${seconds(searchedMs)}; waited ${seconds(waitedMs)} for the deletion of replaced files (by default 8 minutes)`,
  });
}
