import {
  alterPartitionReassignmentsV1,
  Base,
  type Connection,
  describeQuorumV2,
  kGetConnection,
  metadataV12,
  Writer,
} from '@platformatic/kafka';

export interface PartitionState {
  readonly partition: number;
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
}

export type Brokers = ReturnType<typeof openBrokers>;

/** Longer than necessary, because a running broker responds within milliseconds. */
const REQUEST_TIMEOUT_MS = 2_000;
const [ELECT_LEADERS, ELECT_LEADERS_VERSION, PREFERRED] = [43, 2, 0];
/** The topic in which the active controller writes, with one partition. */
const METADATA_TOPIC = { topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] };

type Metadata = ReturnType<typeof metadataV12.parseResponse>;

function openConnections(addresses: readonly string[]) {
  const options = { requestTimeout: REQUEST_TIMEOUT_MS, connectTimeout: REQUEST_TIMEOUT_MS, retries: 0 };
  const clients = addresses.map((address) => new Base({ clientId: 'faults', bootstrapBrokers: [address], ...options }));
  const connect = (id: number) =>
    new Promise<Connection>((resolve, reject) => {
      const [host = '', port = ''] = addresses[id - 1]?.split(':') ?? [];
      clients[id - 1]?.[kGetConnection]({ host, port: Number(port) }, (error, connection) => {
        if (error) return reject(error);
        connection!.on('error', () => {});
        resolve(connection!);
      });
    });
  return { connect, close: async () => void (await Promise.allSettled(clients.map((client) => client.close()))) };
}

async function fetchMetadata(connection: Connection, topic: string): Promise<Metadata> {
  try {
    return await metadataV12.api.async(connection, [topic], false, false);
  } catch (error) {
    const { response } = error as { response?: Metadata };
    if (response?.topics === undefined) throw error;
    return response;
  }
}

/** Sends ElectLeaders: election_type [topic [partitions] TAGS] timeout_ms TAGS. @returns the error code */
function electPreferred(connection: Connection, topic: string, partitions: readonly number[]): Promise<number> {
  const request = () =>
    Writer.create()
      .appendInt8(PREFERRED)
      .appendArray([topic], (writer, name) => {
        writer
          .appendString(name)
          .appendArray([...partitions], (each, partition) => each.appendInt32(partition), true, false);
      })
      .appendInt32(REQUEST_TIMEOUT_MS)
      .appendTaggedFields();
  return new Promise((resolve, reject) => {
    connection.send(
      ELECT_LEADERS,
      ELECT_LEADERS_VERSION,
      request,
      (_correlation, _key, _version, reader) => {
        reader.readInt32(); // throttle time
        return reader.readInt16();
      },
      true,
      true,
      (error, code) => (error ? reject(error) : resolve(code ?? 0)),
    );
  });
}

/**
 * Sends requests to individual brokers, because other brokers may be stopped. Broker ids start at 1.
 * @param addresses all broker addresses
 */
export function openBrokers(addresses: readonly string[]) {
  const { connect, close } = openConnections(addresses);
  /** Sends a request to the first broker that responds. */
  const request = async <T>(send: (connection: Connection) => Promise<T>): Promise<T> => {
    const ids = addresses.map((_, index) => index + 1);
    return await Promise.any(ids.map(async (id) => send(await connect(id))));
  };
  /** @param broker the broker whose view is read. Default: any broker that responds */
  const partitionsOf = async (topic: string, broker?: number) => {
    const fetch = (connection: Connection) => fetchMetadata(connection, topic);
    const { topics } = broker === undefined ? await request(fetch) : await fetch(await connect(broker));
    const states = topics.flatMap(({ partitions }) => partitions);
    return states
      .map(({ partitionIndex, leaderId, replicaNodes, isrNodes }): PartitionState => {
        return { partition: partitionIndex, leader: leaderId, replicas: replicaNodes, inSync: isrNodes };
      })
      .sort((a, b) => a.partition - b.partition);
  };
  return {
    partitionsOf,
    close,
    /** @returns the id of the active controller */
    async controller() {
      const { topics } = await request((connection) => describeQuorumV2.api.async(connection, [METADATA_TOPIC]));
      const leader = topics[0]?.partitions[0]?.leaderId;
      if (leader === undefined || leader < 1) throw new Error('no controller is active');
      return leader;
    },
    /** Sets each partition's preferred leader without holding an election. */
    async setPreferredLeaders(topic: string, leaders: ReadonlyMap<number, number>) {
      const states = await partitionsOf(topic);
      const partitions = states.flatMap(({ partition, replicas }) => {
        const leader = leaders.get(partition);
        if (leader === undefined) return [];
        return [{ partitionIndex: partition, replicas: [leader, ...replicas.filter((id) => id !== leader)] }];
      });
      const topics = [{ name: topic, partitions }];
      const alter = alterPartitionReassignmentsV1.api.async;
      await request((connection) => alter(connection, REQUEST_TIMEOUT_MS, true, topics));
    },
    async elect(topic: string, partitions: readonly number[]) {
      const code = await request((connection) => electPreferred(connection, topic, partitions));
      if (code !== 0) throw new Error(`leaders were not elected: error ${code}`);
    },
  };
}
