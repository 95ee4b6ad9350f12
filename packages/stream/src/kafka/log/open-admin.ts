import { Admin, type Connection } from '../broker-client.ts';
import { guardConnections } from '../connection-guard.ts';
import { connect } from '../leaders.ts';
import { type BrokerTarget, toPlatformaticSecurity } from '../security.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 3_000;
/** A topic that was just created has leaders within a second. Brokers that are away are reported within seconds. */
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

/** The connection to the leader of a partition. @throws Error while there is none */
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
