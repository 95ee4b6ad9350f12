import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Admin } from '@platformatic/kafka';
import { postCounted } from '../count-sent.ts';
import type { Bar, Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { openGateway, type Server } from '../gateway-servers.ts';
import { AMPLIFICATION_MAX, type BatchCase, createHonestBatches, createHostileBatches } from '../hostile-batches.ts';

const BOUND: Bar = { of: 'ratio', bound: 'at most', must: AMPLIFICATION_MAX };
/**
 * Rejections are published within milliseconds after the answer. The log is complete when it has not grown for this
 * many checks.
 */
const QUIET_LOOKS = 10;
const LOOK_EVERY_MS = 50;

/** Effect of one batch: bytes sent to the gateway, and growth of the log. */
interface Grown {
  name: string;
  received: number;
  logged: number;
}

/**
 * Bytes on the log over bytes of the request, head and body. For batches of real clients, and for batches made to
 * maximise the growth.
 */
export const amplification: Figure = {
  name: 'amplification',
  async measure(bench) {
    const gateway = await openGateway(bench);
    const admin = new Admin({ clientId: 'bench', bootstrapBrokers: [...bench.stores.kafka] });
    const now = new Date();
    try {
      const measure = (each: BatchCase) => measureGrowth({ bench, gateway, admin }, each);
      const honest: Grown[] = [];
      for (const each of createHonestBatches(now)) honest.push(await measure(each));
      const hostile: Grown[] = [];
      for (const each of createHostileBatches(now)) hostile.push(await measure(each));
      hostile.sort((a, b) => b.logged / b.received - a.logged / a.received);
      const [worst, ...rest] = hostile;
      const next = rest.slice(0, 3).map(({ name, received, logged }) => `${name} ${(logged / received).toFixed(2)}`);
      const also = [worst!.name, ...next].join('; ');
      const zipped = await measure(toZipped(createHonestBatches(now).at(-1)!));
      return [
        ...honest.map((each) => toGrowth(`a batch of ${each.name}`, each, { bars: [BOUND] })),
        toGrowth(`the worst of ${hostile.length} hostile batches`, worst!, { bars: [BOUND], also }),
        toGrowth('the largest of them gzipped, over bytes as sent', zipped, {}),
      ];
    } finally {
      await admin.close();
      await gateway.close();
    }
  },
};

function toZipped({ name, body, headers }: BatchCase): BatchCase {
  return { name: `${name}, gzipped`, body: gzipSync(body), headers: { ...headers, 'content-encoding': 'gzip' } };
}

function toGrowth(name: string, { received, logged }: Grown, told: { bars?: readonly Bar[]; also?: string }): Row {
  const beside = { beside: 'received', theirs: received };
  return toRow({ figure: 'amplification', case: name, unit: 'bytes', ours: logged, ...beside, also: '', ...told });
}

interface Measuring {
  bench: Bench;
  gateway: Server;
  admin: Admin;
}

async function measureGrowth({ bench, gateway, admin }: Measuring, { name, body, headers }: BatchCase): Promise<Grown> {
  const before = await logBytesOf(admin, bench.topicPrefix);
  const key = { 'x-service-publishable-key': bench.accessKey };
  const path = '/v1/audience/messages';
  const { status, bytes } = await postCounted({ port: gateway.port, path, headers: { ...headers, ...key }, body });
  if (status >= 500) throw new Error(`${name}: ${status}`);
  let logged = 0;
  for (let quiet = 0; quiet < QUIET_LOOKS; quiet++) {
    await delay(LOOK_EVERY_MS);
    const grown = (await logBytesOf(admin, bench.topicPrefix)) - before;
    if (grown !== logged) quiet = 0;
    logged = grown;
  }
  return { name, received: bytes, logged };
}

/** Bytes of the topics of a run on all brokers, each replica counted once. */
async function logBytesOf(admin: Admin, topicPrefix: string): Promise<number> {
  const names = (await admin.listTopics()).filter((name) => name.startsWith(topicPrefix));
  const metadata = await admin.metadata({ topics: names });
  const topics = names.map((name) => {
    const count = metadata.topics.get(name)?.partitionsCount ?? 0;
    return { name, partitions: Array.from({ length: count }, (_, partition) => partition) };
  });
  const described = await admin.describeLogDirs({ topics });
  const partitions = described
    .flatMap(({ results }) => results)
    .flatMap((result) => result.topics)
    .flatMap((topic) => topic.partitions);
  return partitions.reduce((sum, { partitionSize }) => sum + Number(partitionSize), 0);
}
