import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import { openProcess, waitFor } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import { CHAIN, CONTRACTS, ERASURE_ID } from './fill-chain.ts';
import type { Scene } from './scene.ts';

const VISITS = 100;
const VISITS_MIN = 10;
const WARM_UP_VISITS = 10;
const PAGE_MAX_MS = 300;

/**
 * Paths of the pages of an environment, of a project and of the instance. Pages that read much are listed with each of
 * their time spans.
 */
export function pathsOf(scene: Pick<Scene, 'projectId' | 'environment' | 'invitation'>): readonly string[] {
  const { projectId, environment, invitation } = scene;
  const project = `/projects/${projectId}`;
  const base = `${project}/environments/${environment}`;
  return [
    ...['/', project, `${project}/alerts`, `${base}/keys`, `${base}/collections`, `${base}/signable-keys`],
    ...[`${base}/limits`, `${base}/live`, `${base}/live?find=0192f3a4-5b6c-7d8e-9f00-000000000001`],
    ...[`${base}/live?event=purchase`, `${base}/live?event=purchase&as=csv`],
    ...['1', '24', '168', '2160'].map((hours) => `${base}/rejections?hours=${hours}`),
    ...[`${base}/rejections?trace=0123456789abcdef0123456789abcdef`, `${base}/rejections?as=csv`],
    ...[`${base}/people`, `${base}/erasures`, `${base}/erasures/${ERASURE_ID}/receipt`],
    ...[`${base}/mints`, `${base}/mints?status=failed`, `${base}/mints?as=csv`, ...activityPathsOf(base)],
    ...[`${project}/members`, `${project}/audit`, `${project}/audit?as=csv`],
    ...['/settings', '/instance/accounts', '/instance/rate-limit-keys', '/instance/audit'],
    ...['/sign-in?again=1', '/sign-out', invitation],
  ];
}

/** All contracts, one of a tenth of all activities, and one whose tenth was indexed within ten minutes. */
function activityPathsOf(base: string): string[] {
  const of = (contract: string) => `collection=${encodeURIComponent(`${CHAIN}:${contract}`)}`;
  const [big, backfilled] = [of(CONTRACTS.big), of(CONTRACTS.backfilled)];
  const beforeBackfill = `after=${(Date.now() - 2 * 86_400_000) * 1_000}.`;
  const all = ['', 'kind=sale', 'token=4711', beforeBackfill, big, backfilled, `${backfilled}&kind=sale`];
  const files = ['as=csv', `${big}&as=csv`, `${backfilled}&as=csv`];
  return [...all, ...files].map((query) => `${base}/activities${query === '' ? '' : `?${query}`}`);
}

/** Pages whose first byte is not measured here, and why. */
export const UNMEASURED: Readonly<Record<string, string>> = {
  '/projects/:project/environments/:environment/live/events': 'a stream: its events are measured',
  '/sign-in/passkey': 'for a script, while somebody signs in',
  '/settings/passkey': 'for a script, while somebody adds a passkey',
  '/first-sign-in': 'made as that of an invitation is, before there is anybody',
  '/first-sign-in/passkey': 'for a script, of a link',
  '/invitation/passkey': 'for a script, of a link',
  '/reset': 'made as that of an invitation is',
  '/reset/passkey': 'for a script, of a link',
};

interface Visited {
  /** Milliseconds to the first byte. */
  readonly ms: readonly number[];
  readonly body: Buffer;
}

const isLong = (url: string) => /\/(live|mints|activities)\?.*as=csv/.test(url);

/** Where, as whom and how often a page is visited. */
interface VisitOptions {
  readonly url: string;
  readonly cookie: string;
  readonly visits: number;
}

/** Visits a page repeatedly, one visit after the other. @throws Error for an answer other than 200 */
async function visit({ url, cookie, visits }: VisitOptions): Promise<Visited> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ms: number[] = [];
  let body: Buffer = Buffer.alloc(0);
  for (let at = 0; at < WARM_UP_VISITS + visits; at++) {
    const one = await visitOnce(url, { agent, headers: { cookie } });
    if (at >= WARM_UP_VISITS) ms.push(one.ms);
    body = one.body;
  }
  agent.destroy();
  return { ms, body };
}

function visitOnce(url: string, options: { agent: Agent; headers: { cookie: string } }) {
  const startMs = performance.now();
  return new Promise<{ ms: number; body: Buffer }>((resolve, reject) => {
    const request = get(url, options, (answer) => {
      const ms = performance.now() - startMs;
      const chunks: Buffer[] = [];
      if (answer.statusCode !== 200) return reject(new Error(`${url} was answered with ${answer.statusCode}`));
      // Of a long file the rest is left: to read a hundred thousand lines a hundred times would take an hour.
      answer.on('data', (chunk: Buffer) => chunks.push(chunk) === 1 && isLong(url) && answer.destroy());
      answer.once('close', () => resolve({ ms, body: Buffer.concat(chunks) }));
    });
    request.once('error', reject);
  });
}

/** Visits a bare `node:http` server that always answers with the bytes of one page. */
async function visitBare(bench: Bench, body: Buffer, visits: number): Promise<Visited> {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-page-'));
  const file = join(folder, 'page.html');
  writeFileSync(file, body);
  const port = await findFreePort();
  const environment = { ...bench.environment, HTTP_PORT: String(port), ANSWER_FILE: file };
  const bare = openProcess('test/bench/reference/http-server.ts', { environment });
  try {
    const url = `http://127.0.0.1:${port}/`;
    await waitFor('the bare server answers', async () => (await fetch(url)).ok, { measured: bare, maxMs: 30_000 });
    return await visit({ url, cookie: '', visits });
  } finally {
    await bare.close();
    rmSync(folder, { recursive: true });
  }
}

/** Time to the first byte of each page. */
export async function measurePages(bench: Bench, scene: Scene): Promise<Row[]> {
  const rows: Row[] = [];
  const visits = Math.max(VISITS_MIN, Math.round(VISITS * bench.scale));
  for (const path of pathsOf(scene)) {
    const ours = await visit({ url: scene.origin + path, cookie: scene.browser.cookie, visits });
    const bare = await visitBare(bench, ours.body, visits);
    const name = path
      .replace(scene.projectId, 'P')
      .replace(scene.environment, 'E')
      .replace(/code=.*/, 'code=C');
    rows.push(
      toRow({
        figure: 'portal',
        case: `first byte, p99: ${name}`,
        unit: 'ms',
        ours: quantileOf(ours.ms, 0.99),
        beside: 'floor: a bare server answers the same bytes',
        theirs: quantileOf(bare.ms, 0.99),
        bars: [{ of: 'ours', bound: 'at most', must: PAGE_MAX_MS }],
        also: `p50 ${quantileOf(ours.ms, 0.5).toFixed(1)}, bare ${quantileOf(bare.ms, 0.5).toFixed(1)} ms; ${ours.body.length} bytes`,
      }),
    );
  }
  return rows;
}
