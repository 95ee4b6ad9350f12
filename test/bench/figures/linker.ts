import { randomBytes } from 'node:crypto';
import { frameRecord, identityLinkCodec, TOPICS } from '@playline/contracts';
import { Kafka, logLevel } from 'kafkajs';
import type { Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import { type PreparedRecord, publish, readSchemaId } from '../prepared-records.ts';
import {
  type Measured,
  memoryPeakMibOf,
  openProcess,
  pidListeningOn,
  waitFor,
  waitUntilReady,
  watchCpu,
} from '../processes.ts';

const LINKS = 20_000;
const MILLION = 1_000_000;
const LINKED_MAX_MS = 180_000;

interface Pair {
  link: 'identify' | 'alias';
  from: string;
  to: string;
}
/** Every link joins two identities that nobody has seen. */
const apart = (n: number): Pair => ({ link: 'identify', from: `visitor-${n}`, to: `user-${n}` });
/** Every link joins one more identity to the same ever growing person: the worst there is. */
const growing = (n: number): Pair => ({ link: 'alias', from: `chain-${n}`, to: `chain-${n + 1}` });

/** Links per second and per CPU-second: from link facts in Kafka to decisions committed. */
export const linker: Figure = {
  name: 'linker',
  async measure(bench) {
    const adminPort = await findFreePort();
    const group = `${bench.topicPrefix}identity-linker`;
    const settings = { ...bench.environment, CONSUMER_GROUP: group, ADMIN_PORT: String(adminPort) };
    const measured = openProcess('services/identity-linker/src/main.ts', settings);
    try {
      await waitUntilReady(measured, adminPort);
      // Compiled code and open connections are part of a running service: they are paid for before the measure begins.
      await measureLinks(bench, { measured, group, pairOf: (n) => apart(LINKS + n) });
      const one = await measureLinks(bench, { measured, group, pairOf: apart });
      const two = await measureLinks(bench, { measured, group, pairOf: growing });
      return toRows(one, two, measured.pid);
    } finally {
      await measured.close();
    }
  },
};

interface LinkFigure {
  perCpuSecond: number;
  perSecond: number;
  redisCpuSecondsPerMillion: number;
}

async function measureLinks(
  bench: Bench,
  { measured, group, pairOf }: { measured: Measured; group: string; pairOf: (n: number) => Pair },
): Promise<LinkFigure> {
  const records = await prepareLinks(bench, pairOf);
  const own = watchCpu(measured.pid);
  const redis = watchCpu(pidListeningOn(Number(new URL(bench.stores.redis).port)));
  const start = performance.now();
  await publish(bench, records);
  const topic = `${bench.topicPrefix}${TOPICS.identityLinks.name}`;
  const admin = new Kafka({ clientId: 'bench', brokers: bench.stores.kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const caughtUp = async () => {
      const ends = await admin.fetchTopicOffsets(topic);
      const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
      const at = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
      return ends.every(({ partition, high }) => Number(high) === 0 || (at.get(partition) ?? 0) >= Number(high));
    };
    await waitFor('every link is decided', caughtUp, { measured, maxMs: LINKED_MAX_MS });
  } finally {
    await admin.disconnect();
  }
  const seconds = (performance.now() - start) / 1000;
  return {
    perCpuSecond: LINKS / own(),
    perSecond: LINKS / seconds,
    redisCpuSecondsPerMillion: (redis() / LINKS) * MILLION,
  };
}

async function prepareLinks(bench: Bench, pairOf: (n: number) => Pair): Promise<PreparedRecord[]> {
  const topic = `${bench.topicPrefix}${TOPICS.identityLinks.name}`;
  const schemaId = await readSchemaId(bench, topic);
  const key = Buffer.from(bench.environmentId);
  return Array.from({ length: LINKS }, (_, n) => {
    return { topic, key, value: frameRecord(schemaId, encodeLink(bench.environmentId, pairOf(n))) };
  });
}

function encodeLink(environmentId: string, { link, from, to }: Pair): Buffer {
  const now = Date.now();
  const kinds =
    link === 'identify'
      ? ({ fromKind: 'anonymous', toKind: 'steam' } as const)
      : ({ fromKind: 'custom', toKind: 'custom' } as const);
  const times = { eventTime: now, receivedAt: now, traceId: '0'.repeat(32) };
  return identityLinkCodec.encode({
    environmentId,
    messageId: randomBytes(16),
    link,
    ...kinds,
    fromId: from,
    toId: to,
    ...times,
  });
}

/** The two cases stand beside each other: a linker that slows down as a person grows shows it in the ratio. */
function toRows(one: LinkFigure, two: LinkFigure, pid: number): Row[] {
  const names = { figure: 'linker', case: `${LINKS} links, one growing person`, beside: 'links of strangers' };
  const also = `peak ${memoryPeakMibOf(pid)} MiB`;
  return [
    toRow({ ...names, unit: 'links per CPU-second', ours: two.perCpuSecond, theirs: one.perCpuSecond, also }),
    toRow({
      ...names,
      unit: 'Redis CPU-seconds per million links',
      ours: two.redisCpuSecondsPerMillion,
      theirs: one.redisCpuSecondsPerMillion,
      also: '',
    }),
    toRow({ ...names, unit: 'links per second', ours: two.perSecond, theirs: one.perSecond, also: '' }),
  ];
}
