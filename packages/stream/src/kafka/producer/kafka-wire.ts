import { DynamicBuffer } from '@platformatic/dynamic-buffer';
import { explainConnection } from '@playline/stores';
import {
  Base,
  type Connection,
  initProducerIdV4,
  listOffsetsV7,
  produceV9,
  UserError,
  Writer,
} from '../broker-client.ts';
import { connect, groupByLeader, guardConnections } from '../log/open-admin.ts';
import { LATEST, NO_EPOCH } from '../protocol.ts';
import { type BrokerTarget, toPlatformaticSecurity } from '../security.ts';
import { toVerdict, type Verdict } from './broker-faults.ts';
import type { EncodedBatch, Wire } from './sender.ts';

const PRODUCE_KEY = 0;
const PRODUCE_VERSION = 9;
/**
 * Longer than the leader waits for its replicas, and a quarter of the delivery time-out, so that a retry can still
 * reach another broker.
 */
const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const NO_LEADER = -1;

type ProduceAnswer = ReturnType<typeof produceV9.parseResponse>;

export interface KafkaWireOptions extends BrokerTarget {
  clientId: string;
  /** Called with the broker's time of each stored batch, on topics that have it. */
  onLogTime?: ((loggedAtMs: number) => void) | undefined;
}

/** A real cluster, with the connections and metadata of @platformatic/kafka. */
export interface KafkaWire extends Wire {
  /** Asks every leader of these topics for the ends of its logs. Rejects unless all of them answer as leaders. */
  probe(topics: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

function toVerdicts(batches: readonly EncodedBatch[], answer: ProduceAnswer): Verdict[] {
  const verdicts = new Map<string, Verdict>();
  for (const topic of answer.responses)
    for (const { index, errorCode, baseOffset, logAppendTimeMs } of topic.partitionResponses) {
      const base = { offset: Number(baseOffset), loggedAtMs: Number(logAppendTimeMs) };
      verdicts.set(`${topic.name}/${index}`, toVerdict(errorCode, base));
    }
  return batches.map(
    ({ topic, partition }) =>
      verdicts.get(`${topic}/${partition}`) ?? { kind: 'again', ambiguous: true, code: 'NO_ANSWER' },
  );
}

/** Gets the response out of a fault: the client throws for a response with error codes. */
function toAnswer(fault: Error & { response?: ProduceAnswer }): ProduceAnswer | undefined {
  return fault.response?.responses === undefined ? undefined : fault.response;
}

/** Metadata of the cluster, and connections to its brokers. */
class Cluster {
  readonly client: Base;
  brokers = new Map<number, { host: string; port: number }>();
  /** Leaders by topic and partition. Stays unchanged when a refresh fails. */
  readonly leaders = new Map<string, number[]>();

  constructor(options: KafkaWireOptions) {
    this.client = new Base({
      clientId: options.clientId,
      bootstrapBrokers: [...options.brokers],
      ...toPlatformaticSecurity(options),
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // One retry, to reach another broker. The sender does the waiting.
      retries: 1,
      retryDelay: 100,
    });
    guardConnections(this.client, options.onFault);
  }

  async connect(node: number): Promise<Connection> {
    const broker = this.brokers.get(node);
    if (broker === undefined) throw new Error(`broker ${node} is not known`);
    return await connect(this.client, broker);
  }

  async refreshBrokers() {
    this.brokers = (await this.client.metadata({ topics: [], forceUpdate: true })).brokers;
  }

  async refreshTopic(topic: string) {
    const metadata = await this.client.metadata({ topics: [topic], forceUpdate: true });
    this.brokers = metadata.brokers;
    const found = metadata.topics.get(topic);
    if (found === undefined) return;
    const leaders = found.partitions.map(({ leader }) => (metadata.brokers.has(leader) ? leader : NO_LEADER));
    this.leaders.set(topic, leaders);
  }
}

/** One request per topic, because one unknown topic, or one without a leader, fails a whole request. */
async function refreshTopics(cluster: Cluster, topics: readonly string[]): Promise<string[]> {
  const absent: string[] = [];
  for (const topic of topics)
    await cluster.refreshTopic(topic).catch((fault: Error) => {
      // The client also throws a `UserError` when only one side uses TLS. That is no absent topic.
      if (fault instanceof UserError && !explainConnection('Kafka', fault).isRefusal) absent.push(topic);
    });
  return absent;
}

async function initProducer(cluster: Cluster) {
  if (cluster.brokers.size === 0) await cluster.refreshBrokers();
  const nodes = [...cluster.brokers.keys()];
  const node = nodes[Math.floor(Math.random() * nodes.length)]!;
  const answer = await initProducerIdV4.api.async(await cluster.connect(node), null, 0, -1n, -1);
  return { producerId: answer.producerId, producerEpoch: answer.producerEpoch };
}

async function produceTo(cluster: Cluster, node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]> {
  const again = (ambiguous: boolean, code: string): Verdict[] =>
    batches.map(() => ({ kind: 'again', ambiguous, code }));
  let connection: Connection;
  try {
    connection = await cluster.connect(node);
  } catch {
    return again(false, 'NO_CONNECTION');
  }
  // Connecting takes up to `CONNECT_TIMEOUT_MS`.
  const now = performance.now();
  if (batches.some(({ attemptsUntil }) => attemptsUntil <= now)) return again(false, 'NO_CONNECTION');
  return await new Promise((resolve) => {
    const request = () => toProduceRequest(batches);
    const settle = (fault: Error | null, answer?: ProduceAnswer) => {
      const given = fault === null ? answer : toAnswer(fault);
      resolve(given === undefined ? again(true, 'NO_ANSWER') : toVerdicts(batches, given));
    };
    connection.send(PRODUCE_KEY, PRODUCE_VERSION, request, produceV9.parseResponse, true, true, settle);
  });
}

async function askEnds(cluster: Cluster, node: number, topics: Map<string, number[]>) {
  const questions = [...topics].map(([name, partitions]) => ({
    name,
    partitions: partitions.map((partitionIndex) => ({
      partitionIndex,
      currentLeaderEpoch: NO_EPOCH,
      timestamp: LATEST,
    })),
  }));
  await listOffsetsV7.api.async(await cluster.connect(node), NO_LEADER, 0, questions);
}

async function probeLeaders(cluster: Cluster, topics: readonly string[]) {
  for (const topic of topics) await cluster.refreshTopic(topic);
  if (topics.length === 0) await cluster.refreshBrokers();
  const all = topics.flatMap((topic) =>
    (cluster.leaders.get(topic) ?? []).map((leader, partition) => ({ leader, topic, partition })),
  );
  await Promise.all([...groupByLeader(all)].map(([node, asked]) => askEnds(cluster, node, asked)));
}

export function openKafkaWire(options: KafkaWireOptions): KafkaWire {
  const cluster = new Cluster(options);
  const { onLogTime } = options;
  return {
    partitionCount: (topic) => cluster.leaders.get(topic)?.length ?? 0,
    leaderOf: (topic, partition) => cluster.leaders.get(topic)?.[partition] ?? NO_LEADER,
    refresh: (topics) => refreshTopics(cluster, [...topics]),
    newProducerId: () => initProducer(cluster),
    produce: async (node, batches) => {
      const verdicts = await produceTo(cluster, node, batches);
      for (const verdict of verdicts)
        if (verdict.kind === 'stored' && verdict.base?.loggedAtMs != null) onLogTime?.(verdict.base.loggedAtMs);
      return verdicts;
    },
    probe: (topics) => probeLeaders(cluster, topics),
    close: () => cluster.client.close(),
  };
}

const ACKS_ALL = -1;
/** How long a leader waits for its replicas. Shorter than the time-out of a request. */
const REPLICATION_TIMEOUT_MS = 4_000;

/**
 * A produce request of version 9 (the first flexible version, since Kafka 2.4; later ones only extend the answer):
 * transactional_id acks timeout_ms [name [index records TAGS] TAGS] TAGS. The bytes of the batches are not copied.
 */
export function toProduceRequest(batches: readonly EncodedBatch[]): Writer {
  const topics = new Map<string, EncodedBatch[]>();
  for (const batch of batches) {
    const same = topics.get(batch.topic);
    if (same === undefined) topics.set(batch.topic, [batch]);
    else same.push(batch);
  }
  const writer = Writer.create().appendString(null).appendInt16(ACKS_ALL).appendInt32(REPLICATION_TIMEOUT_MS);
  return writer
    .appendArray([...topics], (w, [topic, partitions]) => {
      w.appendString(topic).appendArray(partitions, (each, { partition, bytes }) => {
        each
          .appendInt32(partition)
          .appendUnsignedVarInt(bytes.length + 1)
          .appendFrom(new DynamicBuffer(bytes));
      });
    })
    .appendTaggedFields();
}
