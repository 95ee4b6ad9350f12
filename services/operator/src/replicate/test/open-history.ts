import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { Activity } from '../history.ts';

export const CHAIN = 'made-up-chain';

/** How the fake API responds: a page, an error, a truncated response, an invalid page, or the previous page again. */
export type ResponseKind = 'page' | '429' | '500' | 'broken' | 'nonsense' | 'twice';

export function versionOf(number: number, position: number): Activity {
  const at = `2026-11-22T12:00:00.${String(position).padStart(6, '0')}Z`;
  return {
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    updated_at: at,
    indexed_at: '2026-11-21T12:00:00.000000Z',
    type: 'mint',
    details: { amount: String(position), to: 'a "quoted" name\n' },
    blockchain_metadata: null,
  };
}

export interface FakeHistory {
  readonly url: string;
  readonly versions: readonly Activity[];
  /** Cursors of all requests, in order; null for the first page. */
  readonly requested: readonly (string | null)[];
  put(...numbers: readonly number[]): void;
  /** Sets the responses to the next requests; later requests return their page. */
  respondWith(...responses: readonly ResponseKind[]): void;
  beforeResponse: () => void;
  close(): Promise<void>;
}

/** Starts a fake chain API over HTTP, whose cursors are positions. */
export async function openFakeHistory(): Promise<FakeHistory> {
  const versions: Activity[] = [];
  const outcomes: ResponseKind[] = [];
  const requested: (string | null)[] = [];
  let before: string | null = null;
  const pageAfter = (cursor: string | null, size: number) => {
    const from = Number(cursor ?? 0);
    const last = new Map(versions.map(({ id }, at) => [id, at]));
    const positions = versions.flatMap(({ id }, at) => (at >= from && last.get(id) === at ? [at] : []));
    const shown = positions.slice(0, size);
    const next = shown.length === size ? shown.at(-1)! + 1 : Math.max(from, versions.length);
    return { result: shown.map((at) => versions[at]), page: { previous_cursor: 'p', next_cursor: String(next) } };
  };
  const history: FakeHistory = {
    url: '',
    versions,
    requested,
    put: (...numbers) => void versions.push(...numbers.map((number, at) => versionOf(number, versions.length + at))),
    respondWith: (...more) => void outcomes.push(...more),
    beforeResponse: () => {},
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://history');
    const cursor = url.searchParams.get('page_cursor');
    requested.push(cursor);
    history.beforeResponse();
    const outcome = outcomes.shift() ?? 'page';
    const from = outcome === 'twice' ? before : cursor;
    if (url.pathname !== `/v1/chains/${CHAIN}/activity-history`)
      response.writeHead(404).end('{"message":"no such chain"}');
    else respond(response, outcome, JSON.stringify(pageAfter(from, Number(url.searchParams.get('page_size')))));
    if (outcome === 'page') before = cursor;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return Object.assign(history, { url: `http://127.0.0.1:${address.port}` });
}

function respond(response: ServerResponse, outcome: ResponseKind, page: string): void {
  if (outcome === '429') response.writeHead(429, { 'retry-after': '7' }).end('{}');
  else if (outcome === '500') response.writeHead(500).end('{"message":"internal"}');
  else if (outcome === 'nonsense') response.writeHead(200).end('<p>a proxy</p>');
  else if (outcome === 'broken') {
    response.writeHead(200, { 'content-length': page.length });
    response.write(page.slice(0, page.length / 2), () => response.destroy());
  } else response.writeHead(200).end(page);
}

export function latestVersions(versions: readonly Pick<Activity, 'id' | 'updated_at'>[]): Map<string, unknown> {
  const latest = new Map<string, Pick<Activity, 'id' | 'updated_at'>>();
  for (const version of versions)
    if ((latest.get(version.id)?.updated_at ?? '') <= version.updated_at) latest.set(version.id, version);
  return latest;
}
