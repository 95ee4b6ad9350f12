import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { TOPICS } from '@playline/contracts';
import { createEngine, waitForRows } from '../clickhouse.ts';
import type { Bench, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { postMessages } from '../post.ts';
import { memoryPeakMibOf, openProcess, pidListeningOn, waitFor, watchCpu } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import { type Looker, openLooker, openLookers } from './lookers.ts';
import type { Scene } from './scene.ts';

const LOOKERS = 50;
const MESSAGES = 200_000;
/** Warm-up. After it, code is compiled and the cost of a message is stable. */
const WARM_UP_MESSAGES = 400_000;
const MESSAGES_MIN = 20_000;
const MESSAGES_PER_SECOND = 4_000;
const BATCH_SIZE = 20;
const MILLION = 1_000_000;
const FIRST_EVENTS = 20;
const FIRST_EVENT_MAX_MS = 2_000;
const MEMORY_MAX_MIB = 200;
const EVENT_WAIT_MAX_MS = 30_000;

/** Time from the answer to a message until a watching user gets it, one message after the other. */
async function firstEvents(bench: Bench, scene: Scene): Promise<number[]> {
  const engine = createEngine(bench);
  const before = Number(await engine.ask('SELECT count() FROM events'));
  const looker = await openLooker(scene, scene.browser);
  const ms: number[] = [];
  for (let at = 0; at < FIRST_EVENTS; at++) ms.push(await firstEvent(bench, scene, looker));
  looker.close();
  // The measurements below count rows from here on.
  await waitForRows(engine, { table: 'events', rows: before + FIRST_EVENTS, measured: scene.writer });
  return ms;
}

async function firstEvent(bench: Bench, { gateway }: Scene, looker: Looker): Promise<number> {
  const messageId = randomUUID();
  let toldMs: number | null = null;
  looker.onEvent = (event, atMs) => {
    if (event.messageId === messageId) toldMs = atMs;
  };
  const message = { type: 'track', messageId, eventTimestamp: new Date().toISOString(), eventName: 'first' };
  const answer = await fetch(`http://127.0.0.1:${gateway.port}/v1/audience/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-publishable-key': bench.accessKey },
    body: JSON.stringify({ messages: [{ ...message, anonymousId: 'bench' }] }),
  });
  const answeredMs = performance.now();
  if (answer.status !== 200) throw new Error(`a message was answered with ${answer.status}`);
  await waitFor('the message is told', async () => toldMs !== null, { maxMs: EVENT_WAIT_MAX_MS });
  return (toldMs ?? 0) - answeredMs;
}

/** CPU-seconds of each process per million messages. */
interface Cost {
  readonly gateway: number;
  readonly broker: number;
  readonly writer: number;
  readonly sum: number;
  /** CPU of the reading process. */
  readonly reader: number;
}

interface Reading {
  /** Process that reads at the same time; null for none. */
  readonly readerPid: number | null;
  /** Number of messages at full scale. */
  readonly all?: number;
}

/** Posts messages at a steady rate until all are rows, with or without a reader at the same time. */
async function costOf(bench: Bench, scene: Scene, { readerPid, all = MESSAGES }: Reading): Promise<Cost> {
  const engine = createEngine(bench);
  const messages = Math.max(MESSAGES_MIN, Math.round(all * bench.scale));
  const before = Number(await engine.ask('SELECT count() FROM events'));
  const broker = pidListeningOn(Number(bench.stores.kafka[0]?.split(':').at(-1)));
  const watches = [scene.gateway.pid, broker, scene.writer.pid, readerPid].map(watchCpu);
  await postMessages(scene.gateway, bench, { messages, batchSize: BATCH_SIZE, messagesPerSecond: MESSAGES_PER_SECOND });
  await waitForRows(engine, { table: 'events', rows: before + messages, measured: scene.writer });
  const [gateway = 0, ofBroker = 0, writer = 0, reader = 0] = watches.map((spent) => (spent() / messages) * MILLION);
  return { gateway, broker: ofBroker, writer, sum: gateway + ofBroker + writer, reader };
}

function meanOf(one: Cost, other: Cost): Cost {
  const mean = (name: keyof Cost) => (one[name] + other[name]) / 2;
  const [gateway, broker, writer] = [mean('gateway'), mean('broker'), mean('writer')];
  return { gateway, broker, writer, sum: mean('sum'), reader: mean('reader') };
}

/** Resets the peak memory of a process. Works on Linux only, like everything that reads /proc. */
function forgetMemoryPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

async function costBesideFloor(bench: Bench, scene: Scene): Promise<Cost> {
  const TOPIC = `${bench.topicPrefix}${TOPICS.messages.name}`;
  const floor = openProcess('test/bench/portal/floor-consumer.ts', { environment: { ...bench.environment, TOPIC } });
  try {
    await waitFor('the floor reads', async () => floor.output().includes('ready'), { measured: floor, maxMs: 30_000 });
    return await costOf(bench, scene, { readerPid: floor.pid });
  } finally {
    await floor.close();
  }
}

/** How soon a message is shown, what watching users cost the gateway and the writer, and the memory that they take. */
export async function measureTap(bench: Bench, scene: Scene): Promise<Row[]> {
  await costOf(bench, scene, { readerPid: null, all: WARM_UP_MESSAGES });
  const first = await firstEvents(bench, scene);
  const floor = await costBesideFloor(bench, scene);
  const before = await costOf(bench, scene, { readerPid: scene.portal.pid });
  const memoryBefore = memoryPeakMibOf(scene.portal.pid);
  forgetMemoryPeak(scene.portal.pid);
  const lookers = await openLookers(scene, LOOKERS);
  const watched = await costOf(bench, scene, { readerPid: scene.portal.pid });
  const events = lookers.reduce((sum, each) => sum + each.events, 0);
  const memory = memoryPeakMibOf(scene.portal.pid);
  for (const looker of lookers) looker.close();
  // Measured before and after, because the cost of a message still falls during the measurement.
  const alone = meanOf(before, await costOf(bench, scene, { readerPid: scene.portal.pid }));
  const words = ({ gateway, broker, writer, reader }: Cost) =>
    `gateway ${gateway.toFixed(1)}, broker ${broker.toFixed(1)}, writer ${writer.toFixed(1)}, who reads beside ${reader.toFixed(1)}`;
  const figure = 'portal';
  return [
    toRow({
      figure,
      case: 'from the answer of a message until Live tells it, p99',
      unit: 'ms',
      ours: quantileOf(first, 0.99),
      beside: "the portal's own half second between looks",
      theirs: 500,
      bars: [{ of: 'ours', bound: 'at most', must: FIRST_EVENT_MAX_MS }],
      also: `p50 ${quantileOf(first, 0.5).toFixed(0)} ms of ${first.length}`,
    }),
    toRow({
      figure,
      case: `peak memory of the portal while ${LOOKERS} look`,
      unit: 'MiB',
      ours: memory,
      beside: 'peak before anybody looked, hashing of a password included',
      theirs: memoryBefore,
      bars: [{ of: 'ours', bound: 'at most', must: MEMORY_MAX_MIB }],
      also: `${events} messages told to all of them`,
    }),
    toRow({
      figure,
      case: `gateway, broker and writer, ${LOOKERS} lookers`,
      unit: 'CPU-seconds per million messages',
      ours: watched.sum,
      beside: 'nobody looks',
      theirs: alone.sum,
      also: `${words(watched)}; nobody: ${words(alone)}; floor beside: ${words(floor)}`,
    }),
    toRow({
      figure,
      case: `the portal itself, ${LOOKERS} lookers`,
      unit: 'CPU-seconds per million messages',
      ours: watched.reader,
      beside: 'floor: reads the same records and keeps nothing',
      theirs: floor.reader,
      also: '',
    }),
  ];
}
