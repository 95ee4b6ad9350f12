import {
  Base,
  type Connection,
  initProducerIdV4,
  kGetConnection,
  listOffsetsV7,
  produceV9,
  UserError,
} from '@platformatic/kafka';
import { explainConnection } from '@playline/errors';
import type { KafkaSecurity } from '@playline/runtime';
import { guardConnections } from '../connection-guard.ts';
import { toPlatformaticSecurity } from '../security.ts';
import { toVerdict, type Verdict } from './broker-faults.ts';
import { toProduceRequest } from './produce-request.ts';
import type { EncodedBatch, Wire } from './wire.ts';

const PRODUCE_KEY = 0;
const PRODUCE_VERSION = 9;
/** Longer than the leader waits for its replicas, a quarter of a delivery time-out: a frozen broker may be replaced. */
const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const NO_LEADER = -1;
/** Offset to ask for in the probe: the log's end. */
const LATEST = -1n;

type ProduceAnswer = ReturnType<typeof produceV9.parseResponse>;

export interface KafkaWireOptions {
  brokers: readonly string[];
  security?: KafkaSecurity;
  clientId: string;
  onFault?: (fault: unknown) => void;
}

/** The real cluster, over the connections and metadata of @platformatic/kafka. */
export interface KafkaWire extends Wire {
  /** Asks every leader of these topics for the end of its logs; rejects unless all of them answer as leaders. */
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

/** A response with error codes arrives as a fault that carries the response. */
function toAnswer(fault: Error & { response?: ProduceAnswer }): ProduceAnswer | undefined {
  return fault.response?.responses === undefined ? undefined : fault.response;
}

/** What is known of the cluster, and connections to its brokers. */
class Cluster {
  readonly client: Base;
  brokers = new Map<number, { host: string; port: number }>();
  /** Leader by partition, by topic; what was known last when a refresh fails. */
  readonly leaders = new Map<string, number[]>();

  constructor(options: KafkaWireOptions) {
    this.client = new Base({
      clientId: options.clientId,
      bootstrapBrokers: [...options.brokers],
      ...toPlatformaticSecurity(options),
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // One more attempt reaches another broker; waiting in between is the sender's business.
      retries: 1,
      retryDelay: 100,
    });
    guardConnections(this.client, options.onFault);
  }

  async connect(node: number): Promise<Connection> {
    const broker = this.brokers.get(node);
    if (broker === undefined) throw new Error(`broker ${node} is not known`);
    return await new Promise<Connection>((resolve, reject) => {
      this.client[kGetConnection](broker, (error, found) => (error ? reject(error) : resolve(found!)));
    });
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

/** One question a topic: an unknown topic or one without a leader fails the whole question it stands in. */
async function refreshTopics(cluster: Cluster, topics: readonly string[]): Promise<string[]> {
  const absent: string[] = [];
  for (const topic of topics)
    await cluster.refreshTopic(topic).catch((fault: Error) => {
      // The client also calls it a user's mistake when a port speaks TLS and we do not, or the other way round.
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
    partitions: partitions.map((partitionIndex) => ({ partitionIndex, currentLeaderEpoch: -1, timestamp: LATEST })),
  }));
  await listOffsetsV7.api.async(await cluster.connect(node), NO_LEADER, 0, questions);
}

async function probeLeaders(cluster: Cluster, topics: readonly string[]) {
  const nodes = new Map<number, Map<string, number[]>>();
  for (const topic of topics) {
    await cluster.refreshTopic(topic);
    for (const [partition, leader] of (cluster.leaders.get(topic) ?? []).entries()) {
      const asked = nodes.get(leader) ?? new Map<string, number[]>();
      asked.set(topic, [...(asked.get(topic) ?? []), partition]);
      nodes.set(leader, asked);
    }
  }
  if (topics.length === 0) await cluster.refreshBrokers();
  await Promise.all([...nodes].map(([node, asked]) => askEnds(cluster, node, asked)));
}

export function openKafkaWire(options: KafkaWireOptions): KafkaWire {
  const cluster = new Cluster(options);
  return {
    partitionCount: (topic) => cluster.leaders.get(topic)?.length ?? 0,
    leaderOf: (topic, partition) => cluster.leaders.get(topic)?.[partition] ?? NO_LEADER,
    refresh: (topics) => refreshTopics(cluster, [...topics]),
    newProducerId: () => initProducer(cluster),
    produce: (node, batches) => produceTo(cluster, node, batches),
    probe: (topics) => probeLeaders(cluster, topics),
    close: () => cluster.client.close(),
  };
}
