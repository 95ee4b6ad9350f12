import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Admin } from '@platformatic/kafka';
import { atMost, type Bench, type Figure, toRow } from '../figure.ts';
import {
  AMPLIFICATION_MAX,
  type BatchCase,
  createHonestBatches,
  createHostileBatches,
  postCounted,
} from '../hostile-batches.ts';
import { MESSAGES_PATH } from '../load-client.ts';
import { withOpened } from '../opened.ts';
import { type Server, startGateway } from '../services.ts';

/** Rejections are published after the answer. The log is complete when it has not grown for this many polls. */
const QUIET_POLLS = 10;
const POLL_MS = 50;

/** Bytes on the log over bytes of the request, head and body, for batches of real clients and for hostile batches. */
export const amplification: Figure = {
  name: 'amplification',
  measure: (bench) =>
    withOpened(async (keep) => {
      const gateway = keep(await startGateway(bench));
      const admin = keep(new Admin({ clientId: 'bench', bootstrapBrokers: [...bench.stores.kafka] }));
      const now = new Date();
      const measureAll = async (batches: readonly BatchCase[]) => {
        const grown = [];
        for (const batch of batches) grown.push(await measureGrowth(bench, { gateway, admin }, batch));
        return grown;
      };
      const honest = createHonestBatches(now);
      const normal = await measureAll(honest);
      const hostile = await measureAll(createHostileBatches(now));
      hostile.sort((one, other) => ratioOf(other) - ratioOf(one));
      const [worst, ...rest] = hostile;
      const next = rest.slice(0, 3).map((each) => `${each.name} ${ratioOf(each).toFixed(2)}`);
      const [zipped] = await measureAll([toZipped(honest.at(-1)!)]);
      const common = { unit: 'bytes', peer: 'received' };
      const bars = [atMost('ratio', AMPLIFICATION_MAX)];
      const notes = [worst!.name, ...next].join('; ');
      return [
        ...normal.map((each) => toRow({ ...common, case: `a batch of ${each.name}`, ...valuesOf(each), bars })),
        toRow({ ...common, case: `the worst of ${hostile.length} hostile batches`, ...valuesOf(worst!), bars, notes }),
        toRow({ ...common, case: 'the largest of them gzipped, over bytes as sent', ...valuesOf(zipped!) }),
      ];
    }),
};

type Growth = Awaited<ReturnType<typeof measureGrowth>>;

const ratioOf = ({ logged, received }: Growth) => logged / received;
const valuesOf = ({ logged, received }: Growth) => ({ value: logged, peerValue: received });

const toZipped = ({ name, body, headers }: BatchCase): BatchCase => ({
  name: `${name}, gzipped`,
  body: gzipSync(body),
  headers: { ...headers, 'content-encoding': 'gzip' },
});

async function measureGrowth(
  bench: Bench,
  { gateway, admin }: { gateway: Server; admin: Admin },
  { name, body, headers }: BatchCase,
) {
  const before = await logBytesOf(admin, bench.topicPrefix);
  const all = { ...headers, 'x-service-publishable-key': bench.publishableKey };
  const { status, bytes } = await postCounted({ port: gateway.port, path: MESSAGES_PATH }, { headers: all, body });
  if (status >= 500) throw new Error(`${name}: ${status}`);
  let logged = 0;
  for (let quiet = 0; quiet < QUIET_POLLS; quiet++) {
    await delay(POLL_MS);
    const grown = (await logBytesOf(admin, bench.topicPrefix)) - before;
    if (grown !== logged) quiet = 0;
    logged = grown;
  }
  return { name, received: bytes, logged };
}

async function logBytesOf(admin: Admin, topicPrefix: string): Promise<number> {
  const names = (await admin.listTopics()).filter((name) => name.startsWith(topicPrefix));
  const metadata = await admin.metadata({ topics: names });
  const topics = names.map((name) => {
    const count = metadata.topics.get(name)?.partitionsCount ?? 0;
    return { name, partitions: Array.from({ length: count }, (_, partition) => partition) };
  });
  const partitions = (await admin.describeLogDirs({ topics }))
    .flatMap(({ results }) => results)
    .flatMap((result) => result.topics)
    .flatMap((topic) => topic.partitions);
  return partitions.reduce((sum, { partitionSize }) => sum + Number(partitionSize), 0);
}
