import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import { openProcess, waitFor } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import type { Scene } from './scene.ts';

const VISITS = 100;
const WARM_UP_VISITS = 10;
const PAGE_MAX_MS = 300;

/**
 * Paths of the pages of an environment, of a project and of the instance. Pages that read much are listed with each of
 * their time spans.
 */
export function pathsOf({ projectId, environment }: Scene): readonly string[] {
  const project = `/projects/${projectId}`;
  const base = `${project}/environments/${environment}`;
  return [
    ...['/', project, `${base}/keys`, `${base}/collections`, `${base}/signable-keys`, `${base}/limits`, `${base}/live`],
    `${base}/live?find=0192f3a4-5b6c-7d8e-9f00-000000000001`,
    ...['1', '24', '168', '2160'].map((hours) => `${base}/rejections?hours=${hours}`),
    `${base}/rejections?trace=0123456789abcdef0123456789abcdef`,
    `${base}/people`,
    ...[`${base}/erasures`, `${project}/members`, `${project}/audit`, `${project}/audit?as=csv`],
    ...['/settings', '/instance/accounts', '/instance/rate-limit-keys', '/instance/audit'],
  ];
}

interface Visited {
  /** Milliseconds to the first byte. */
  readonly ms: readonly number[];
  readonly body: Buffer;
}

/** Visits a page repeatedly, one visit after the other. @throws Error for an answer other than 200 */
async function visit(url: string, cookie: string): Promise<Visited> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ms: number[] = [];
  let body: Buffer = Buffer.alloc(0);
  for (let at = 0; at < WARM_UP_VISITS + VISITS; at++) {
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
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.once('end', () => resolve({ ms, body: Buffer.concat(chunks) }));
    });
    request.once('error', reject);
  });
}

/** Visits a bare `node:http` server that always answers with the bytes of one page. */
async function visitBare(bench: Bench, body: Buffer): Promise<Visited> {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-page-'));
  const file = join(folder, 'page.html');
  writeFileSync(file, body);
  const port = await findFreePort();
  const environment = { ...bench.environment, HTTP_PORT: String(port), ANSWER_FILE: file };
  const bare = openProcess('test/bench/reference/http-server.ts', { environment });
  try {
    const url = `http://127.0.0.1:${port}/`;
    await waitFor('the bare server answers', async () => (await fetch(url)).ok, { measured: bare, maxMs: 30_000 });
    return await visit(url, '');
  } finally {
    await bare.close();
    rmSync(folder, { recursive: true });
  }
}

/** Time to the first byte of each page. */
export async function measurePages(bench: Bench, scene: Scene): Promise<Row[]> {
  const rows: Row[] = [];
  for (const path of pathsOf(scene)) {
    const ours = await visit(scene.origin + path, scene.browser.cookie);
    const bare = await visitBare(bench, ours.body);
    const name = path.replace(scene.projectId, 'P').replace(scene.environment, 'E');
    rows.push(
      toRow({
        ...{ figure: 'portal', case: `first byte, p99: ${name}`, unit: 'ms', ours: quantileOf(ours.ms, 0.99) },
        ...{ beside: 'floor: a bare server answers the same bytes', theirs: quantileOf(bare.ms, 0.99) },
        bars: [{ of: 'ours', bound: 'at most', must: PAGE_MAX_MS }],
        also: `p50 ${quantileOf(ours.ms, 0.5).toFixed(1)}, bare ${quantileOf(bare.ms, 0.5).toFixed(1)} ms; ${ours.body.length} bytes`,
      }),
    );
  }
  return rows;
}
