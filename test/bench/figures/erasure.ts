import { FENCES_KNOWN_WITHIN_MS } from '@playline/erasure';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { createEngine } from '../clickhouse.ts';
import { type Bystanders, INGEST, type Waits, watchBystanders } from '../erasure/bystanders.ts';
import { readTableBytes } from '../erasure/cost.ts';
import { type Erased, eraseSome, type Scene } from '../erasure/erase.ts';
import { DAYS, fillEvents, linkPeople, NAMES, type People } from '../erasure/people.ts';
import { measureRemoval, type Removal, shortenLooks } from '../erasure/removal.ts';
import { timesOf } from '../erasure/requests.ts';
import { openStack } from '../erasure/stack.ts';
import { type Bar, type Figure, type Row, toRow } from '../figure.ts';
import { medianOf, quantileOf } from '../quantile.ts';

/** Number of single-person erasures, one after the other. */
const ONES = 5;
const REQUESTS = 1_000;
/** The eraser's setting BATCH_WINDOW_MS. */
const BATCH_WINDOW_MS = 2_000;
const WAITS_MS = BATCH_WINDOW_MS + FENCES_KNOWN_WITHIN_MS;
const ONE_MAX: Bar = { of: 'ours', bound: 'at most', must: 60_000, aim: 10_000 };
const QUEUED_MAX: Bar = { of: 'ours', bound: 'at most', must: 60_000, aim: 20_000 };
const BYTES_MAX: Bar = { of: 'ratio', bound: 'at most', must: 0.1 };

/**
 * Erases people through the whole stack while messages arrive and an analyst sends queries. First one person after the
 * other, then a thousand at once. Each has three identities and a hundred rows, spread evenly over event names and
 * days.
 */
export const erasure: Figure = {
  name: 'erasure',
  optional: true,
  async measure(bench) {
    await shortenLooks(createEngine(bench));
    const people = await fillEvents(bench);
    const { user, url, password } = bench.stores.clickhouse;
    const target = { url, user, password, database: bench.database };
    const stores = { rows: openErasureRows(target), records: openErasureRecords(target) };
    const stack = await openStack(bench);
    try {
      await linkPeople(bench, people);
      return toRows(people, await measureAll({ bench, stack, people, ...stores }));
    } finally {
      await stack.close();
      await stores.rows.close();
      await stores.records.close();
    }
  },
};

type Beside<T> = { readonly done: T; readonly bystanders: Bystanders };

interface Measures {
  readonly tableBytes: number;
  readonly ones: Beside<Erased[]>;
  readonly many: Beside<Erased>;
  readonly removal: Removal;
}

async function measureAll(scene: Scene): Promise<Measures> {
  const { bench } = scene;
  const requests = Math.max(1, Math.round(REQUESTS * bench.scale));
  const tableBytes = await readTableBytes(createEngine(bench));
  const { withEraser } = scene.stack;
  const eraseOnes = async () => {
    const erased: Erased[] = [];
    for (let person = 0; person < ONES; person++) erased.push(await eraseSome(scene, { first: person, count: 1 }));
    return erased;
  };
  const ones = await withEraser(() => watchBystanders(scene, eraseOnes));
  const many = await withEraser(() => watchBystanders(scene, () => eraseSome(scene, { first: ONES, count: requests })));
  return { tableBytes, ones, many, removal: await measureRemoval(bench, scene, ONES + requests) };
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
const millions = (rows: number) => `${rows / 1e6} million`;

function toRows(people: People, { tableBytes, ones, many, removal }: Measures): Row[] {
  const queued = `${many.done.receipts.length} requests at once`;
  return [
    ...timeRows(ones.done, { ...many.done, name: queued }),
    ...costRows(ones.done, { many: { ...many.done, name: queued }, people, tableBytes }),
    ...bystanderRows('one request after the other', ones.bystanders),
    ...bystanderRows(queued, many.bystanders),
    removalRow(many.done, removal),
  ];
}

type Named = Erased & { readonly name: string };

const timesIn = ({ receipts }: Erased) => receipts.map(timesOf);

function timeRows(ones: readonly Erased[], many: Named): Row[] {
  const unit = 'ms from accepted to visibly erased';
  const alone = ones.flatMap(timesIn);
  const aloneMs = medianOf(alone.map(({ all }) => all));
  const queued = timesIn(many);
  const ours = (q: number) =>
    quantileOf(
      queued.map(({ all }) => all),
      q,
    );
  const of = { figure: 'erasure', case: many.name, beside: 'one request', theirs: aloneMs };
  return [
    toRow({
      figure: 'erasure',
      case: `one request, median of ${ONES}`,
      unit,
      ours: aloneMs,
      beside: 'floor: its waits, for others and for fences',
      theirs: WAITS_MS,
      bars: [ONE_MAX],
      also: describe(alone),
    }),
    toRow({ ...of, unit: `p50 ${unit}`, ours: ours(0.5), also: describe(queued) }),
    toRow({
      ...of,
      unit: `p99 ${unit}`,
      ours: ours(0.99),
      bars: [QUEUED_MAX],
      also: `longest ${seconds(ours(1))}; all accepted within ${seconds(many.askedMs)}`,
    }),
  ];
}

/** Medians of the phases. */
function describe(times: readonly ReturnType<typeof timesOf>[]): string {
  const part = (name: 'fenced' | 'stored' | 'swept') => seconds(medianOf(times.map((each) => each[name])));
  return `fenced after ${part('fenced')}, log stored ${part('stored')} later, then swept in ${part('swept')}`;
}

interface Costs {
  readonly many: Named;
  readonly people: People;
  readonly tableBytes: number;
}

function costRows(ones: readonly Erased[], { many, people, tableBytes }: Costs): Row[] {
  const readBytes = medianOf(ones.map((each) => each.readBytes));
  const cpuMs = medianOf(ones.map((each) => each.cpuMs));
  const events = medianOf(ones.map((each) => each.events));
  return [
    toRow({
      figure: 'erasure',
      case: `one person of ${events} rows, evenly over ${NAMES} names and ${DAYS} days, in ${millions(people.rows)}`,
      unit: 'bytes read',
      ours: readBytes,
      beside: 'the whole table',
      theirs: tableBytes,
      bars: [BYTES_MAX],
      also: `${ones.map((each) => megabytes(each.readBytes)).join(', ')} of ${megabytes(tableBytes)}; ${many.name}: ${megabytes(many.readBytes)}`,
    }),
    toRow({
      figure: 'erasure',
      case: many.name,
      unit: 'engine CPU-ms per request',
      ours: many.cpuMs / many.receipts.length,
      beside: 'one request',
      theirs: cpuMs,
      also: `${many.events} rows of events, ${seconds(many.cpuMs)} of CPU together`,
    }),
  ];
}

function bystanderRows(what: string, { quiet, busy }: Bystanders): Row[] {
  const { batchSize, requestsPerSecond } = INGEST;
  const names: Record<keyof Waits, string> = {
    gateway: `answers to ${requestsPerSecond} batches of ${batchSize} a second`,
    analyst: 'answers to an analyst',
  };
  return (Object.keys(names) as (keyof Waits)[]).map((who) =>
    toRow({
      figure: 'erasure',
      case: `${what}: ${names[who]}`,
      unit: 'p99 ms',
      ours: busy[who].p99,
      beside: 'the same without erasures, just before',
      theirs: quiet[who].p99,
      also: `p50 ${busy[who].p50.toFixed(1)} and ${quiet[who].p50.toFixed(1)}; ${busy[who].answers} and ${quiet[who].answers} answers`,
    }),
  );
}

function removalRow({ events }: Erased, removal: Removal): Row {
  const { ms, writtenMs, lookedMs, waitedMs, cpuSeconds, idleMs } = removal;
  return toRow({
    figure: 'erasure',
    case: `${events} deleted rows are removed from every file, by night`,
    unit: 'ms',
    ours: ms,
    beside: 'the same again, with nothing to remove',
    theirs: idleMs,
    also: `${cpuSeconds.toFixed(1)} CPU-s; written ${seconds(writtenMs)}, looked ${seconds(lookedMs)}; waited ${seconds(waitedMs)} for replaced files, which by itself is eight minutes; no row in any file`,
  });
}
