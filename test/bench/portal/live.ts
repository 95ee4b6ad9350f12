import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { TOPICS } from '@playline/contracts';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import { createEngine, waitForRows } from '../clickhouse.ts';
import { atMost, type Bench, type Row, scaled, toRow } from '../figure.ts';
import { postMessages } from '../load.ts';
import { MESSAGES_PATH } from '../load-client.ts';
import { withOpened } from '../opened.ts';
import { memoryPeakMibOf, openProcess, pidListeningOn, waitFor, watchCpu } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import type { Scene } from './scene.ts';

interface Viewer {
  readonly events: number;
  onEvent: (event: { readonly kind: string; readonly messageId?: string }, atMs: number) => void;
  close(): void;
}

/** Opens a live stream and waits until it delivers new messages. @throws Error on a status other than 200 */
async function openViewer(
  { origin, projectId, environment }: Scene,
  browser: Pick<TestBrowser, 'cookie'>,
): Promise<Viewer> {
  const url = `${origin}/projects/${projectId}/environments/${environment}/live/events`;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false, headers: { cookie: browser.cookie } }, resolve).once('error', reject);
  });
  if (response.statusCode !== 200) throw new Error(`the stream failed with status ${response.statusCode}`);
  const viewer = { events: 0, onEvent: () => {}, close: () => void response.destroy() } as Viewer & { events: number };
  response.on('error', () => {});
  await new Promise<void>((resolve) => {
    let rest = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      const atMs = performance.now();
      const parts = (rest + chunk).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts.filter((each) => each.startsWith('data: '))) {
        const event = JSON.parse(part.slice('data: '.length));
        if (event.kind === 'status' && event.isWatching) resolve();
        if (event.kind === 'message') viewer.events++;
        viewer.onEvent(event, atMs);
      }
    });
  });
  return viewer;
}

async function openViewers(scene: Scene, count: number): Promise<Viewer[]> {
  const viewers: Viewer[] = [];
  for (let index = 0; index < count; index++)
    viewers.push(await openViewer(scene, scene.viewers[index % scene.viewers.length] ?? scene.browser));
  return viewers;
}

/** The maximum per project. */
const VIEWERS = 16;
const MESSAGES = 200_000;
/** Enough to compile the code, after which the cost per message is stable. */
const WARM_UP_MESSAGES = 400_000;
const MESSAGES_MIN = 20_000;
const MESSAGES_PER_SECOND = 4_000;
const FIRST_EVENTS = 20;
const POLL_MS = 500;
const EVENT_WAIT_MAX_MS = 30_000;

const countEvents = (bench: Bench) => createEngine(bench).queryNumber('SELECT count() FROM events');

/** Measures the time from the response to a message until a viewer receives the message, one message at a time. */
async function measureFirstEvents(bench: Bench, scene: Scene): Promise<number[]> {
  const before = await countEvents(bench);
  const viewer = await openViewer(scene, scene.browser);
  const ms: number[] = [];
  for (let event = 0; event < FIRST_EVENTS; event++) ms.push(await measureFirstEvent(bench, scene, viewer));
  viewer.close();
  const rows = before + FIRST_EVENTS;
  await waitForRows(createEngine(bench), { table: 'events', rows, measured: scene.writer });
  return ms;
}

async function measureFirstEvent(bench: Bench, { gateway }: Scene, viewer: Viewer): Promise<number> {
  const messageId = randomUUID();
  let receivedMs: number | null = null;
  viewer.onEvent = (event, atMs) => {
    if (event.messageId === messageId) receivedMs = atMs;
  };
  const time = { eventTimestamp: new Date().toISOString() };
  const message = { type: 'track', messageId, ...time, eventName: 'first', anonymousId: 'bench' };
  const response = await fetch(`http://127.0.0.1:${gateway.port}${MESSAGES_PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-publishable-key': bench.publishableKey },
    body: JSON.stringify({ messages: [message] }),
  });
  const responseMs = performance.now();
  if (response.status !== 200) throw new Error(`a message failed with status ${response.status}`);
  await waitFor('the viewer receives the message', async () => receivedMs !== null, { maxMs: EVENT_WAIT_MAX_MS });
  return (receivedMs ?? 0) - responseMs;
}

const PARTS = ['gateway', 'broker', 'writer', 'reader'] as const;
type Cost = Record<(typeof PARTS)[number], number>;

const sumOf = ({ gateway, broker, writer }: Cost) => gateway + broker + writer;

/** Posts messages at a constant rate and waits until all are stored. @param readerPid a concurrent reader */
async function measureCost(
  bench: Bench,
  scene: Scene,
  { readerPid, total = MESSAGES }: { readerPid: number | null; total?: number },
): Promise<Cost> {
  const messages = scaled(bench, total, MESSAGES_MIN);
  const before = await countEvents(bench);
  const broker = pidListeningOn(Number(bench.stores.kafka[0]?.split(':').at(-1)));
  const watches = [scene.gateway.pid, broker, scene.writer.pid, readerPid].map(watchCpu);
  await postMessages(scene.gateway, bench, { messages, batchSize: 20, messagesPerSecond: MESSAGES_PER_SECOND });
  const rows = before + messages;
  await waitForRows(createEngine(bench), { table: 'events', rows, measured: scene.writer });
  const costs = watches.map((spent) => (spent() / messages) * 1e6);
  return Object.fromEntries(PARTS.map((part, index) => [part, costs[index]])) as Cost;
}

const measureFloor = (bench: Bench, scene: Scene): Promise<Cost> =>
  withOpened(async (keep) => {
    const TOPIC = `${bench.topicPrefix}${TOPICS.messages.name}`;
    const environment = { ...bench.environment, TOPIC };
    const floor = keep(openProcess('test/bench/portal/floor-consumer.ts', { environment }));
    await waitFor('the floor is up', async () => floor.output().includes('ready'), { measured: floor, maxMs: 30_000 });
    return measureCost(bench, scene, { readerPid: floor.pid });
  });

export async function measureLive(bench: Bench, scene: Scene): Promise<Row[]> {
  const { pid } = scene.portal;
  await measureCost(bench, scene, { readerPid: null, total: WARM_UP_MESSAGES });
  const first = await measureFirstEvents(bench, scene);
  const floor = await measureFloor(bench, scene);
  const before = await measureCost(bench, scene, { readerPid: pid });
  const memoryBefore = memoryPeakMibOf(pid);
  // Resets the process's peak memory.
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const viewers = await openViewers(scene, VIEWERS);
  const withViewers = await measureCost(bench, scene, { readerPid: pid });
  const events = viewers.reduce((sum, viewer) => sum + viewer.events, 0);
  const memory = memoryPeakMibOf(pid);
  for (const viewer of viewers) viewer.close();
  // The cost without viewers is measured before and after, because it still decreases slightly over time.
  const after = await measureCost(bench, scene, { readerPid: pid });
  const withoutViewers = Object.fromEntries(PARTS.map((part) => [part, (before[part] + after[part]) / 2])) as Cost;
  const describe = (cost: Cost) => PARTS.map((part) => `${part} ${cost[part].toFixed(1)}`).join(', ');
  return [
    toRow({
      case: 'from the response to a message until Live shows the message, p99',
      unit: 'ms',
      value: quantileOf(first, 0.99),
      peer: "the portal's poll interval",
      peerValue: POLL_MS,
      bars: [atMost('value', 2_000)],
      notes: `p50 ${quantileOf(first, 0.5).toFixed(0)} ms, ${first.length} messages`,
    }),
    toRow({
      case: `portal, peak memory with ${VIEWERS} viewers`,
      unit: 'MiB',
      value: memory,
      peer: 'peak before the first viewer, including password hashing',
      peerValue: memoryBefore,
      bars: [atMost('value', 200)],
      notes: `${events} messages shown to all viewers`,
    }),
    toRow({
      case: `gateway, broker and writer, ${VIEWERS} viewers`,
      unit: 'CPU-seconds per million messages',
      value: sumOf(withViewers),
      peer: 'without viewers',
      peerValue: sumOf(withoutViewers),
      notes: `${describe(withViewers)}; without viewers: ${describe(withoutViewers)}; floor: ${describe(floor)}`,
    }),
    toRow({
      case: `portal, ${VIEWERS} viewers`,
      unit: 'CPU-seconds per million messages',
      value: withViewers.reader,
      peer: 'floor: reads and discards the same records',
      peerValue: floor.reader,
    }),
  ];
}
