import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import {
  type ActivityJson,
  type ActivityRow,
  type ChainInsert,
  type ChainStore,
  type CursorPosition,
  type ShownActivity,
  START_GAP,
  type TokenRow,
  toPageBody,
  toTokenJson,
} from '@playline/chain';
import { createMemoryChain, type MemoryChain, putActivities } from '@playline/chain/memory';
import { type ActivityType, parseTimestampMicros } from '@playline/contracts';
import { type Importer, importLines } from '../../../services/operator/src/import/importer.ts';
import {
  ACTIVITIES,
  type ImportedRow,
  type ImportSubject,
  TOKENS,
} from '../../../services/operator/src/import/subjects.ts';
import { createRun } from '../run.ts';
import { createTraffic, type TrafficLine } from './traffic.ts';

export const CHAIN = { name: 'made-up-chain', id: 'eip155:31337' };
const NOON_MS = Date.UTC(2026, 10, 21, 12);

export function makeGroups(seed: number, { activities = 600, broken = 0.1 } = {}): TrafficLine[][] {
  const run = createRun(seed, NOON_MS);
  const traffic = createTraffic({ run, chain: CHAIN.name, activitiesMax: activities, brokenShare: broken });
  const groups: TrafficLine[][] = [];
  for (let group = traffic.next(NOON_MS); group !== null; group = traffic.next(NOON_MS + groups.length))
    groups.push(group);
  return groups;
}

/** The faults of a chain. Each function gets the correct value, and returns what happens instead. */
export interface Faults {
  readonly page?: (activities: ActivityJson[], filters: URLSearchParams, isBackwards: boolean) => ActivityJson[];
  readonly write?: (row: ActivityRow) => ActivityRow[];
  readonly token?: (token: ReturnType<typeof toTokenJson>) => object;
  readonly ignoresEtags?: boolean;
  readonly refuses?: (request: number) => number | null;
  /** The number of lines that an import claims to have published. */
  readonly published?: (count: number) => number;
}

function createImporters(faults: Faults, { activities: store, reader }: MemoryChain) {
  let time = NOON_MS * 1_000;
  let blocks = 0;
  const withTime = <R extends { updatedAt: number }>(row: R): R => {
    time += 1_000;
    return { ...row, updatedAt: time };
  };
  const insert = (block: Pick<ChainInsert, 'table' | 'rows'>) =>
    store.insert({ ...block, token: `${blocks++}`, signal: new AbortController().signal } as ChainInsert);
  const writeActivities = async (rows: readonly ActivityRow[]) => {
    const written = rows.flatMap((row) => faults.write?.(row) ?? [row]).map(withTime);
    await putActivities(store, written);
  };
  const writeTokens = (rows: readonly TokenRow[]) => insert({ table: 'tokens', rows: rows.map(withTime) });
  const importerOf = <R, Row extends ImportedRow>(
    subject: ImportSubject<R, Row>,
    write: (rows: Row[]) => Promise<void>,
  ): Pick<Importer<R, Row>, 'import'> => ({
    import: async ({ chain, ...job }) => {
      const imported = await importLines<R, Row>({
        subject,
        ...job,
        parse: subject.createParse({ chain, traceId: 'ab'.repeat(16) }),
        readStored: (rows) => subject.readStored(reader, rows),
        publish: (records) => write(records.map(subject.toRow)),
      });
      return { ...imported, published: faults.published?.(imported.published) ?? imported.published };
    },
  });
  return { activities: importerOf(ACTIVITIES, writeActivities), tokens: importerOf(TOKENS, writeTokens) };
}

const toShown = (rows: readonly ShownActivity[]): ActivityJson[] =>
  JSON.parse(String(toPageBody(rows, JSON.stringify(CHAIN), 'null'))).result;

async function answerHistory({ page: spoil }: Faults, reader: ChainStore, { searchParams: filters }: URL) {
  const { gap, direction } = readCursor(filters.get('page_cursor'));
  const page = await reader.readPage({
    chain: CHAIN.name,
    gap,
    direction,
    limit: Number(filters.get('page_size')),
    horizon: Number.MAX_SAFE_INTEGER - 1,
    filters: toFilters(filters),
  });
  const shown = toShown(page.rows);
  const previous_cursor = writeCursor({ gap: page.previous, direction: 'previous' });
  const next_cursor = writeCursor({ gap: page.next, direction: 'next' });
  const result = spoil?.(shown, filters, direction === 'previous') ?? shown;
  return { status: 200, headers: {}, body: JSON.stringify({ result, page: { previous_cursor, next_cursor } }) };
}

async function answerToken(faults: Faults, row: TokenRow | null, known: string | undefined) {
  if (row === null) return { status: 404, headers: {}, body: '{}' };
  const token = toTokenJson(row, CHAIN);
  const body = JSON.stringify({ result: faults.token?.(token) ?? token });
  const etag = `"${createHash('sha256').update(body).digest('hex')}"`;
  const isSame = known === etag && faults.ignoresEtags !== true;
  return { status: isSame ? 304 : 200, headers: { etag }, body: isSame ? '' : body };
}

/** A store and an HTTP interface in memory. Everything is correct except for the given faults. */
export async function openFaultyChain(faults: Faults = {}) {
  const memory = createMemoryChain();
  const { reader } = memory;
  let requests = 0;
  const answer = async (request: IncomingMessage) => {
    const url = new URL(request.url ?? '', 'http://chain');
    const refused = faults.refuses?.(requests++) ?? null;
    if (refused !== null) return { status: refused, headers: { 'retry-after': '0' }, body: '{}' };
    const address = /\/tokens\/(0x[0-9a-f]+)$/.exec(url.pathname)?.[1];
    if (address === undefined) return answerHistory(faults, reader, url);
    return answerToken(faults, await reader.readToken(CHAIN.name, address), request.headers['if-none-match']);
  };
  const server = createServer(async (request, response) => {
    const { status, headers, body } = await answer(request);
    response.writeHead(status, headers).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port');
  return {
    ...createImporters(faults, memory),
    url: `http://127.0.0.1:${bound.port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function readCursor(text: string | null): CursorPosition {
  if (text === null) return { gap: START_GAP, direction: 'next' };
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as CursorPosition;
}
const writeCursor = (position: CursorPosition) => Buffer.from(JSON.stringify(position)).toString('base64url');

function toFilters(parameters: URLSearchParams) {
  const timeOf = (name: string) => {
    const text = parameters.get(name);
    return text === null ? null : parseTimestampMicros(text);
  };
  return {
    fromIndexedAt: timeOf('from_indexed_at'),
    toIndexedAt: timeOf('to_indexed_at'),
    contractAddress: parameters.get('contract_address'),
    type: parameters.get('activity_type') as ActivityType | null,
  };
}
