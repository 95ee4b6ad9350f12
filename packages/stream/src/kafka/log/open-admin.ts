import { createConnectGate } from '@playline/stores';
import { Admin, type Base, type Broker, type Connection, kGetConnection } from '../broker-client.ts';
import { CONNECT_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../protocol.ts';
import { type BrokerTarget, toPlatformaticSecurity } from '../security.ts';

/** Enough for a new topic, which has leaders within a second. Unavailable brokers are reported within seconds. */
const LEADER_RETRIES = 10;
const LEADER_WAIT_MS = 200;

export interface LogReaderOptions extends BrokerTarget {
  readonly clientId: string;
}

export function openAdmin(options: LogReaderOptions): Admin {
  const admin = new Admin({
    clientId: options.clientId,
    bootstrapBrokers: [...options.brokers],
    ...toPlatformaticSecurity(options),
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retries: LEADER_RETRIES,
    retryDelay: LEADER_WAIT_MS,
  });
  guardConnections(admin, options.onFault);
  return admin;
}

/** Connects to a partition's leader. @throws Error while the partition has no leader */
export async function connectToLeader(
  admin: Admin,
  { topic, partition }: { topic: string; partition: number },
): Promise<{ topicId: string; connection: Connection }> {
  const metadata = await admin.metadata({ topics: [topic] });
  const found = metadata.topics.get(topic);
  const broker = metadata.brokers.get(found?.partitions[partition]?.leader ?? -1);
  if (found === undefined || broker === undefined) {
    await admin.metadata({ topics: [topic], forceUpdate: true });
    throw new Error(`${topic}/${partition} has no leader`);
  }
  return { topicId: found.id, connection: await connect(admin, broker) };
}

/** @throws Error while the broker is unreachable */
export function connect(client: Base, broker: { host: string; port: number }): Promise<Connection> {
  return new Promise((resolve, reject) => {
    client[kGetConnection](broker, (error, opened) => (error ? reject(error) : resolve(opened!)));
  });
}

/** @returns partitions by leader and topic */
export function groupByLeader<P>(
  all: Iterable<{ readonly leader: number; readonly topic: string; readonly partition: P }>,
): Map<number, Map<string, P[]>> {
  const byLeader = new Map<number, Map<string, P[]>>();
  for (const { leader, topic, partition } of all) {
    const topics = byLeader.get(leader) ?? new Map<string, P[]>();
    byLeader.set(leader, topics);
    topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  }
  return byLeader;
}

type Connected = (fault: Error | null, connection?: Connection) => void;
type GetConnection = (broker: Broker, callback: Connected) => void;
type GetFirstAvailable = (brokers: Broker[], callback: Connected) => void;

const nameOf = (broker: Broker | undefined) => `${broker?.host}:${broker?.port}`;

/**
 * Works around four bugs in @platformatic/kafka 2.12: a second error on a connection is uncaught and crashes the
 * process; a closed connection keeps its re-authentication timer, which then breaks the new connection; failed
 * requests reconnect without a delay, even after a rejected login; and every metadata request is first sent to the
 * first bootstrap broker, even if this broker is frozen.
 */
export function guardConnections(client: Base, onFault?: (fault: unknown) => void): void {
  const pool = client.connections;
  /** The order in which connections were lost, by broker. A request that times out closes its connection. */
  const losses = new Map<string, number>();
  let lossCount = 0;
  pool.on('connecting', ({ connection, broker }: { connection: Connection; broker: Broker }) => {
    const lost = () => void losses.set(nameOf(broker), ++lossCount);
    connection.on('error', (fault) => {
      lost();
      onFault?.(fault);
    });
    connection.once('close', () => {
      lost();
      connection.close(() => {});
    });
  });
  const gate = createConnectGate('Kafka');
  const connect = pool.get.bind(pool) as GetConnection;
  const get: GetConnection = (broker, callback) => {
    const name = nameOf(broker);
    const refusal = gate.refusalOf(name);
    if (refusal !== null) return queueMicrotask(() => callback(refusal));
    connect(broker, (fault, connection) => {
      gate.settled(name, fault);
      callback(fault, connection);
    });
  };
  const connectToFirst = pool.getFirstAvailable.bind(pool) as GetFirstAvailable;
  const lossOf = (broker: Broker) => losses.get(nameOf(broker)) ?? 0;
  const getFirstAvailable: GetFirstAvailable = (brokers, callback) =>
    connectToFirst(
      brokers.toSorted((one, other) => lossOf(one) - lossOf(other)),
      callback,
    );
  Object.assign(pool, { get, getFirstAvailable });
}
