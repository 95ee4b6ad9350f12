import { Agent, get } from 'node:http';
import { createQueryRows } from '@playline/stores';
import { OVERVIEW_RANGES, toSearch } from '../../../services/portal/src/pages/overview/page.ts';
import { createPortalReads } from '../../../services/portal/src/reads/index.ts';
import { atMost, type Bench, type Row, scaled, toRow } from '../figure.ts';
import { quantileOf } from '../quantile.ts';
import { startBareServer } from '../services.ts';
import { CHAIN, CONTRACTS, ERASURE_ID } from './fill.ts';
import type { Scene } from './scene.ts';

/** Identity key of the user with the number 1, `sipHash128('user', toUInt32(1))`. */
const PERSON = 'c7da88ff5ac938f95d3c1629d5834b1a';
const VISITS = 100;
const VISITS_MIN = 10;
const WARM_UP_VISITS = 10;
const OVERVIEW_MS_MAX = 100;

export function pathsOf(scene: Pick<Scene, 'projectId' | 'environment' | 'invitation'>): readonly string[] {
  const { projectId, environment, invitation } = scene;
  const project = `/projects/${projectId}`;
  const base = `${project}/environments/${environment}`;
  return [
    ...['/', project, `${base}/keys`, `${base}/collections`, `${base}/signable-keys`],
    ...OVERVIEW_RANGES.map(({ name }) => `${base}/overview?range=${name}`),
    ...[`${base}/limits`, `${base}/live`, `${base}/explore`, `${base}/explore?range=30d`],
    ...[`${base}/explore?message=0192f3a4-5b6c-7d8e-9f00-000000000001`, `${base}/explore?property=level&value=3`],
    ...[`${base}/explore?event=purchase`, `${base}/explore?event=purchase&as=csv`],
    ...['1h', '24h', '7d', '30d', '90d'].map((range) => `${base}/rejections?range=${range}`),
    ...[`${base}/rejections?trace=0123456789abcdef0123456789abcdef`, `${base}/rejections?as=csv`],
    ...[`${base}/people`, `${base}/people?person=${PERSON}`, `${base}/people?person=${PERSON}&as=csv`],
    ...[`${base}/erasures`, `${base}/erasures/${ERASURE_ID}`, `${base}/erasures/${ERASURE_ID}/receipt`],
    ...[`${base}/mints`, `${base}/mints?status=failed`, `${base}/mints?as=csv`, ...activityPathsOf(base)],
    ...[`${project}/members`, `${project}/audit`, `${project}/audit?as=csv`, `${project}/alerts`],
    ...[`${project}/analyst-settings`, `${base}/connect`, `${base}/demo`],
    ...['/settings', '/instance/accounts', '/instance/rate-limit-keys', '/instance/audit'],
    ...['/sign-in?again=1', '/sign-out', invitation],
  ];
}

// Activity pages for all contracts, for a contract with 10 % of all activities, and for a backfilled contract.
function activityPathsOf(base: string): string[] {
  const of = (contract: string) => `collection=${encodeURIComponent(`${CHAIN}:${contract}`)}`;
  const [big, backfilled] = [of(CONTRACTS.big), of(CONTRACTS.backfilled)];
  const beforeBackfill = `after=${(Date.now() - 2 * 86_400_000) * 1_000}.`;
  const all = ['', 'kind=sale', 'token=4711', beforeBackfill, big, backfilled, `${backfilled}&kind=sale`];
  const files = ['as=csv', `${big}&as=csv`, `${backfilled}&as=csv`];
  return [...all, ...files].map((query) => `${base}/activities${query === '' ? '' : `?${query}`}`);
}

/** Pages whose time to first byte is not measured, with the reason. */
export const UNMEASURED: Readonly<Record<string, string>> = {
  '/projects/:project/environments/:environment': 'redirects to the overview',
  '/projects/:project/environments/:environment/live/events': 'a stream, measured separately',
  '/sign-in/passkey': 'used by the script of the sign-in page',
  '/settings/passkey': 'used by the script of the settings page',
  '/first-sign-in': 'same page as an invitation',
  '/first-sign-in/passkey': 'used by the script of an invitation page',
  '/invitation/passkey': 'used by the script of an invitation page',
  '/reset': 'same page as an invitation',
  '/reset/passkey': 'used by the script of an invitation page',
};

interface Visited {
  readonly ms: readonly number[];
  readonly body: Buffer;
}

const isLongDownload = (url: string) => /\/(explore|people|mints|activities)\?.*as=csv/.test(url);

/** Requests a page repeatedly, in sequence. @throws Error on a status other than 200 */
async function visit(url: string, visits: number, cookie = ''): Promise<Visited> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ms: number[] = [];
  let body: Buffer = Buffer.alloc(0);
  for (let index = 0; index < WARM_UP_VISITS + visits; index++) {
    const visited = await visitOnce(url, { agent, headers: { cookie } });
    if (index >= WARM_UP_VISITS) ms.push(visited.ms);
    body = visited.body;
  }
  agent.destroy();
  return { ms, body };
}

function visitOnce(url: string, options: { agent: Agent; headers: { cookie: string } }) {
  const startMs = performance.now();
  return new Promise<{ ms: number; body: Buffer }>((resolve, reject) => {
    const request = get(url, options, (response) => {
      const ms = performance.now() - startMs;
      const chunks: Buffer[] = [];
      if (response.statusCode !== 200) return reject(new Error(`${url} responded with status ${response.statusCode}`));
      response.on('data', (chunk: Buffer) => chunks.push(chunk) === 1 && isLongDownload(url) && response.destroy());
      response.once('close', () => resolve({ ms, body: Buffer.concat(chunks) }));
    });
    request.once('error', reject);
  });
}

/** The overview shares results for ten seconds, so most of its measured visits run no query. */
export async function measureOverviewQueries(bench: Bench): Promise<Row[]> {
  const { overview } = createPortalReads(createQueryRows({ ...bench.stores.clickhouse, database: bench.database }));
  const rows: Row[] = [];
  for (const range of OVERVIEW_RANGES) {
    const ms: number[] = [];
    for (let index = 0; index < WARM_UP_VISITS + scaled(bench, VISITS, VISITS_MIN); index++) {
      const startMs = performance.now();
      await overview(toSearch(bench.environmentId, range, Date.now()));
      ms.push(performance.now() - startMs);
    }
    const measured = ms.slice(WARM_UP_VISITS);
    rows.push(
      toRow({
        case: `query of the overview, p99: ${range.text}`,
        unit: 'ms',
        value: quantileOf(measured, 0.99),
        peer: 'the target of the page',
        peerValue: OVERVIEW_MS_MAX,
        bars: [atMost('value', OVERVIEW_MS_MAX)],
        notes: `p50 ${quantileOf(measured, 0.5).toFixed(1)} ms`,
      }),
    );
  }
  return rows;
}

export async function measurePages(bench: Bench, scene: Scene): Promise<Row[]> {
  const rows: Row[] = [];
  const visits = scaled(bench, VISITS, VISITS_MIN);
  for (const path of pathsOf(scene)) {
    const page = await visit(scene.origin + path, visits, scene.browser.cookie);
    const server = await startBareServer(bench, page.body);
    const bare = await visit(`http://127.0.0.1:${server.port}/`, visits).finally(() => server.close());
    const name = path
      .replace(scene.projectId, 'P')
      .replace(scene.environment, 'E')
      .replace(/code=.*/, 'code=C');
    rows.push(
      toRow({
        case: `time to first byte, p99: ${name}`,
        unit: 'ms',
        value: quantileOf(page.ms, 0.99),
        peer: 'floor: a bare server responds with the same bytes',
        peerValue: quantileOf(bare.ms, 0.99),
        bars: [atMost('value', path.includes('/overview') ? OVERVIEW_MS_MAX : 300)],
        notes: `p50 ${quantileOf(page.ms, 0.5).toFixed(1)}, bare ${quantileOf(bare.ms, 0.5).toFixed(1)} ms; ${page.body.length} bytes`,
      }),
    );
  }
  return rows;
}
