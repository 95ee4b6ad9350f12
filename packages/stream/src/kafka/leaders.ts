import { type Base, type Connection, kGetConnection } from './broker-client.ts';

/** @throws Error while the broker cannot be reached */
export function connect(client: Base, broker: { host: string; port: number }): Promise<Connection> {
  return new Promise((resolve, reject) => {
    client[kGetConnection](broker, (error, opened) => (error ? reject(error) : resolve(opened!)));
  });
}

/** What is asked of one partition, and who leads it. */
export interface OfLeader<P> {
  readonly leader: number;
  readonly topic: string;
  readonly partition: P;
}

/** @returns by leader, then by topic */
export function groupByLeader<P>(all: Iterable<OfLeader<P>>): Map<number, Map<string, P[]>> {
  const byLeader = new Map<number, Map<string, P[]>>();
  for (const { leader, topic, partition } of all) {
    const topics = byLeader.get(leader) ?? new Map<string, P[]>();
    byLeader.set(leader, topics);
    topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  }
  return byLeader;
}
