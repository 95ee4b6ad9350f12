import {
  alterPartitionReassignmentsV1,
  Base,
  type Connection,
  kGetConnection,
  metadataV12,
  Writer,
} from '@platformatic/kafka';

/** Who leads a partition, and who has all that it holds, as one broker knows it. */
export interface PartitionState {
  readonly partition: number;
  /** -1 without one. */
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
}

/** The brokers of a cluster, asked one by one: others may stand still. Ids count from 1 in the order of the addresses. */
export interface Brokers {
  /** As the broker `asked` knows it, by partition. */
  partitionsOf(topic: string, asked: number): Promise<PartitionState[]>;
  /** Makes this replica of each partition the one that leads where nothing else is wrong. Elects nobody. */
  prefer(topic: string, leaders: ReadonlyMap<number, number>): Promise<void>;
  /** Gives each partition to the replica that is preferred; who leads it until now stops to, and lives. */
  elect(topic: string, partitions: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

/** A broker that lives answers in milliseconds; what is asked is asked again. */
const REQUEST_TIMEOUT_MS = 2_000;
const [ELECT_LEADERS, ELECT_LEADERS_VERSION, PREFERRED] = [43, 2, 0];
/** The broker that is the controller: changes are asked of it. */
const CONTROLLER = 1;

type Metadata = ReturnType<typeof metadataV12.parseResponse>;

function toConnect(addresses: readonly string[]) {
  const clients = addresses.map(
    (address) =>
      new Base({
        clientId: 'faults',
        bootstrapBrokers: [address],
        requestTimeout: REQUEST_TIMEOUT_MS,
        connectTimeout: REQUEST_TIMEOUT_MS,
        retries: 0,
      }),
  );
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

/** Some partition without a leader makes the client throw; its answer stands in the fault. */
async function askMetadata(connection: Connection, topic: string): Promise<Metadata> {
  try {
    return await metadataV12.api.async(connection, [topic], false, false);
  } catch (error) {
    const { response } = error as { response?: Metadata };
    if (response?.topics === undefined) throw error;
    return response;
  }
}

/** ElectLeaders request: election_type [topic [partitions] TAGS] timeout_ms TAGS. @returns the error of the whole request */
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

/** @param addresses of all brokers, the controller's first */
export function openBrokers(addresses: readonly string[]): Brokers {
  const { connect, close } = toConnect(addresses);
  const partitionsOf = async (topic: string, asked: number) => {
    const { topics } = await askMetadata(await connect(asked), topic);
    const states = topics.flatMap(({ partitions }) => partitions);
    return states
      .map(({ partitionIndex, leaderId, replicaNodes, isrNodes }): PartitionState => {
        return { partition: partitionIndex, leader: leaderId, replicas: replicaNodes, inSync: isrNodes };
      })
      .sort((one, other) => one.partition - other.partition);
  };
  return {
    partitionsOf,
    close,
    async prefer(topic, leaders) {
      const states = await partitionsOf(topic, CONTROLLER);
      const partitions = states.flatMap(({ partition, replicas }) => {
        const leader = leaders.get(partition);
        if (leader === undefined) return [];
        return [{ partitionIndex: partition, replicas: [leader, ...replicas.filter((id) => id !== leader)] }];
      });
      const topics = [{ name: topic, partitions }];
      await alterPartitionReassignmentsV1.api.async(await connect(CONTROLLER), REQUEST_TIMEOUT_MS, true, topics);
    },
    async elect(topic, partitions) {
      const code = await electPreferred(await connect(CONTROLLER), topic, partitions);
      if (code !== 0) throw new Error(`leaders were not elected: error ${code}`);
    },
  };
}
