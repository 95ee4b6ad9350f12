import {
  Base,
  type Connection,
  initProducerIdV4,
  kGetConnection,
  listOffsetsV7,
  produceV9,
  UserError,
} from '@platformatic/kafka';
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
interface Topology {
  brokers: Map<number, { host: string; port: number }>;
  /** Leader by partition, by topic; what was known last when a refresh fails. */
  leaders: Map<string, number[]>;
}

/** The real cluster, over the connections and metadata of @platformatic/kafka. */
export interface KafkaWire extends Wire {
  /** Asks every leader of these topics for the end of its logs; rejects unless all of them answer as leaders. */
  probe(topics: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

function toVerdicts(batches: readonly EncodedBatch[], answer: ProduceAnswer): Verdict[] {
  const codes = new Map<string, number>();
  for (const topic of answer.responses)
    for (const partition of topic.partitionResponses)
      codes.set(`${topic.name}/${partition.index}`, partition.errorCode);
  return batches.map(({ topic, partition }) => {
    const code = codes.get(`${topic}/${partition}`);
    return code === undefined ? { kind: 'again', ambiguous: true, code: 'NO_ANSWER' } : toVerdict(code);
  });
}

/** A response with error codes arrives as a fault that carries the response. */
function toAnswer(fault: Error & { response?: ProduceAnswer }): ProduceAnswer | undefined {
  return fault.response?.responses === undefined ? undefined : fault.response;
}

export function openKafkaWire(options: { brokers: readonly string[]; clientId: string }): KafkaWire {
  const client = new Base({
    clientId: options.clientId,
    bootstrapBrokers: [...options.brokers],
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // One more attempt reaches another broker; waiting in between is the sender's business.
    retries: 1,
    retryDelay: 100,
  });
  const topology: Topology = { brokers: new Map(), leaders: new Map() };
  const guarded = new WeakSet<Connection>();

  const connect = async (node: number): Promise<Connection> => {
    const broker = topology.brokers.get(node);
    if (broker === undefined) throw new Error(`broker ${node} is not known`);
    const connection = await new Promise<Connection>((resolve, reject) => {
      client[kGetConnection](broker, (error, found) => (error ? reject(error) : resolve(found!)));
    });
    // The client listens for the first error of a connection only; a second one must not end the process.
    if (!guarded.has(connection)) connection.on('error', () => {});
    guarded.add(connection);
    return connection;
  };

  const refreshTopic = async (topic: string) => {
    const metadata = await client.metadata({ topics: [topic], forceUpdate: true });
    topology.brokers = metadata.brokers;
    const found = metadata.topics.get(topic);
    if (found === undefined) return;
    const leaders = found.partitions.map(({ leader }) => (metadata.brokers.has(leader) ? leader : NO_LEADER));
    topology.leaders.set(topic, leaders);
  };

  const askEnds = async (node: number, topics: Map<string, number[]>) => {
    const questions = [...topics].map(([name, partitions]) => ({
      name,
      partitions: partitions.map((partitionIndex) => ({
        partitionIndex,
        currentLeaderEpoch: -1,
        timestamp: LATEST,
      })),
    }));
    await listOffsetsV7.api.async(await connect(node), NO_LEADER, 0, questions);
  };

  return {
    partitionCount: (topic) => topology.leaders.get(topic)?.length ?? 0,
    leaderOf: (topic, partition) => topology.leaders.get(topic)?.[partition] ?? NO_LEADER,
    async refresh(topics) {
      // One question a topic: an unknown topic or one without a leader fails the whole question it stands in.
      const absent: string[] = [];
      for (const topic of topics)
        await refreshTopic(topic).catch((fault: Error) => {
          if (fault instanceof UserError) absent.push(topic);
        });
      return absent;
    },
    async newProducerId() {
      const any = topology.brokers.keys().next();
      if (any.done)
        await client.metadata({ topics: [], forceUpdate: true }).then((m) => (topology.brokers = m.brokers));
      const nodes = [...topology.brokers.keys()];
      const node = nodes[Math.floor(Math.random() * nodes.length)]!;
      const answer = await initProducerIdV4.api.async(await connect(node), null, 0, -1n, -1);
      return { producerId: answer.producerId, producerEpoch: answer.producerEpoch };
    },
    async produce(node, batches) {
      const again = (ambiguous: boolean, code: string): Verdict[] =>
        batches.map(() => ({ kind: 'again', ambiguous, code }));
      let connection: Connection;
      try {
        connection = await connect(node);
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
    },
    async probe(topics) {
      const nodes = new Map<number, Map<string, number[]>>();
      for (const topic of topics) {
        await refreshTopic(topic);
        for (const [partition, leader] of (topology.leaders.get(topic) ?? []).entries()) {
          const asked = nodes.get(leader) ?? new Map<string, number[]>();
          asked.set(topic, [...(asked.get(topic) ?? []), partition]);
          nodes.set(leader, asked);
        }
      }
      if (topics.length === 0) await client.metadata({ topics: [], forceUpdate: true });
      await Promise.all([...nodes].map(([node, asked]) => askEnds(node, asked)));
    },
    close: () => client.close(),
  };
}
