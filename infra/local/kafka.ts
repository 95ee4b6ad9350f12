// The Kafka brokers of a stack: settings, data folders and processes.
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { patchKafkaTimer } from '../kafka/timer.ts';
import { runCommand } from './command.ts';
import { classPathOf, jarFolderOf } from './jars.ts';
import { classArchiveOf, type Java } from './java.ts';
import { SECURED_LISTENER, securedListenerSettings, setScramPassword } from './kafka-security.ts';
import type { ProcessSpec } from './keeper.ts';
import { nodeName } from './node-names.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { writePrivateFile } from './private-file.ts';
import type { StackSecurity } from './security.ts';
import { storeEnvironment } from './store-environment.ts';

const JVM_FLAGS = [
  '-Xms384m',
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:ReservedCodeCacheSize=96m',
  '-XX:MaxDirectMemorySize=128m',
  // Disables performance counters, which are unused and are sampled twenty times per second.
  '-XX:-UsePerfData',
  // On a small machine, the C2 compiler costs more than it gains.
  '-XX:TieredStopAtLevel=1',
];

/** Identical in all stacks, so that a formatted folder can be copied. */
const CLUSTER_ID = 'cGxheWxpbmUtbG9jYWwtMQ';
const PROBE_TOPIC = 'playline.probe';

export interface KafkaPorts {
  kafka: number;
  /** Ports of all controllers. The first controller belongs to the first broker. */
  controllers: readonly number[];
  /** A second broker listener, for clients that connect through a proxy. */
  front?: { port: number; advertisedPort: number } | null;
  /** Port of the listener with TLS and logins. If set, the front listener also uses TLS and logins. */
  secured?: number | null;
}

/** One broker of a cluster. Each broker is also a controller, so that any of them may be down. */
export interface KafkaMember {
  /** Broker id, starting at 1. */
  id: number;
  clusterSize: number;
}

const SINGLE_BROKER: KafkaMember = { id: 1, clusterSize: 1 };

function listenersOf({ kafka, controllers, front, secured }: KafkaPorts, { id }: KafkaMember): Record<string, string> {
  const toListener = (name: string, port: number) => `${name}://127.0.0.1:${port}`;
  const encrypted = secured ? [toListener(SECURED_LISTENER, secured)] : [];
  const protocols = {
    PLAINTEXT: 'PLAINTEXT',
    CONTROLLER: 'PLAINTEXT',
    ...(front ? { FRONT: secured ? 'SASL_SSL' : 'PLAINTEXT' } : {}),
    ...(secured ? { [SECURED_LISTENER]: 'SASL_SSL' } : {}),
  };
  const controller = toListener('CONTROLLER', controllers[id - 1] ?? 0);
  const frontListener = (port = 0) => (front ? [toListener('FRONT', port)] : []);
  const pairs = Object.entries(protocols).map(([name, protocol]) => `${name}:${protocol}`);
  return {
    listeners: [toListener('PLAINTEXT', kafka), controller, ...frontListener(front?.port), ...encrypted].join(),
    'advertised.listeners': [
      toListener('PLAINTEXT', kafka),
      ...frontListener(front?.advertisedPort),
      ...encrypted,
    ].join(),
    'listener.security.protocol.map': pairs.join(),
  };
}

/** Settings for a cluster of several brokers, with short timeouts for tests. */
function clusterSettingsOf({ clusterSize }: KafkaMember): Settings {
  if (clusterSize === 1) return {};
  const [replicas, inSync] = [Math.min(3, clusterSize), Math.min(2, clusterSize)];
  return {
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'unclean.leader.election.enable': false,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': clusterSize,
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'transaction.state.log.num.partitions': clusterSize,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
    // A stopped follower leaves the in-sync set after two seconds.
    'replica.lag.time.max.ms': 2000,
    'replica.fetch.wait.max.ms': 200,
    'replica.socket.timeout.ms': 2000,
    // By default, a leader waits 30 s for a controller that is frozen or cut off, and cannot add a follower to the in-sync
    // set in this time.
    'controller.socket.timeout.ms': 2000,
    'log.cleaner.dedupe.buffer.size': 4 * 1024 * 1024,
    // Longer than for a single controller, because an election interrupts the others.
    'controller.quorum.election.timeout.ms': 1000,
    'controller.quorum.fetch.timeout.ms': 2000,
  };
}

const MEMBER_HEAP = ['-Xms160m', '-Xmx160m'];

const jvmFlagsOf = ({ clusterSize }: KafkaMember): string[] =>
  clusterSize === 1 ? JVM_FLAGS : [...MEMBER_HEAP, ...JVM_FLAGS.filter((flag) => !/^-Xm[sx]/.test(flag))];

/** Settings that reduce the load of an idle broker. */
const IDLE_SETTINGS: Record<string, number> = {
  'num.network.threads': 2,
  'num.io.threads': 2,
  'group.coordinator.threads': 1,
  // Without followers, the checkpoint file is not needed; by default, it is written and synced every 5 s.
  'replica.high.watermark.checkpoint.interval.ms': 60_000,
  'broker.heartbeat.interval.ms': 1000,
  // The controller writes empty records, by default twice per second.
  'metadata.max.idle.interval.ms': 10_000,
};

type Settings = Record<string, string | number | boolean>;

function settingsOf(ports: KafkaPorts, dataFolder: string, member: KafkaMember): Settings {
  return {
    'process.roles': 'broker,controller',
    'node.id': member.id,
    ...listenersOf(ports, member),
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    // Voters are a setting instead of data, so that ports can change between starts.
    'controller.quorum.voters': ports.controllers.map((port, index) => `${index + 1}@127.0.0.1:${port}`).join(),
    'log.dirs': dataFolder,
    'auto.create.topics.enable': false,
    'default.replication.factor': 1,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'share.coordinator.state.topic.num.partitions': 1,
    // Avoids a delay in tests that wait for consumers to join.
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1000,
    'group.consumer.min.session.timeout.ms': 1000,
    'group.consumer.min.heartbeat.interval.ms': 500,
    'group.consumer.heartbeat.interval.ms': 1000,
    ...IDLE_SETTINGS,
    'num.recovery.threads.per.data.dir': 2,
    'log.cleaner.dedupe.buffer.size': 16 * 1024 * 1024,
    'log.segment.bytes': 128 * 1024 * 1024,
    // No other broker can take over leadership.
    'controlled.shutdown.enable': false,
    // After a kill the old registration must expire before the broker can register again.
    'broker.session.timeout.ms': 3000,
    'controller.quorum.election.timeout.ms': 500,
    'controller.quorum.fetch.timeout.ms': 1000,
    ...clusterSettingsOf(member),
  };
}

function writeSettings(path: string, settings: Settings): void {
  // In a properties file, a backslash is an escape character.
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${String(value).replaceAll('\\', '\\\\')}`);
  writePrivateFile(path, `${lines.join('\n')}\n`);
}

const log4jFlag = `-Dlog4j2.configurationFile=${join(import.meta.dirname, 'jars', 'log4j2.properties')}`;

/** Returns a formatted, empty data folder. New stacks copy it, which saves a JVM start. */
async function prepareFormattedFolder(paths: StackPaths, java: Java, classPath: string): Promise<string> {
  const formatted = join(paths.downloads, 'kafka', 'formatted');
  if (existsSync(join(formatted, 'meta.properties'))) return formatted;
  const temporary = `${formatted}.${process.pid}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  const settings = `${temporary}.properties`;
  writeSettings(settings, settingsOf({ kafka: 9092, controllers: [9093] }, temporary, SINGLE_BROKER));
  const args = ['-XX:TieredStopAtLevel=1', log4jFlag, '-cp', classPath, 'kafka.tools.StorageTool', 'format'];
  await runCommand(java.program, [...args, '-t', CLUSTER_ID, '-c', settings], {
    folder: temporary,
    logFile: logFileOf(paths, 'kafka'),
  });
  rmSync(settings);
  try {
    renameSync(temporary, formatted);
  } catch (error) {
    // Another stack of this checkout has just created the folder.
    if (!existsSync(join(formatted, 'meta.properties'))) throw error;
    rmSync(temporary, { recursive: true, force: true });
  }
  return formatted;
}

/** Assigns separate ids to a copy of the formatted folder. */
function assignIds(dataFolder: string, { id }: KafkaMember): void {
  const path = join(dataFolder, 'meta.properties');
  const text = readFileSync(path, 'utf8').replace(/^node\.id=.*$/m, `node.id=${id}`);
  writeFileSync(path, text.replace(/^directory\.id=.*$/m, `directory.id=${randomBytes(16).toString('base64url')}`));
}

/**
 * Returns true once the broker is a member of the cluster, which stores records. A broker that is fenced after a kill
 * only serves metadata requests, in which it is missing.
 */
export async function acceptsRecords(broker: string): Promise<boolean> {
  patchKafkaTimer();
  const client = new Kafka({
    clientId: 'playline-probe',
    brokers: [broker],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 5000,
    retry: { retries: 0 },
  });
  const admin = client.admin();
  const producer = client.producer({ allowAutoTopicCreation: false });
  try {
    await admin.connect();
    const { brokers } = await admin.describeCluster();
    if (!brokers.some(({ port }) => broker.endsWith(`:${port}`))) return false;
    const existing = await admin.listTopics();
    if (!existing.includes(PROBE_TOPIC)) {
      const configEntries = [{ name: 'retention.ms', value: '60000' }];
      await admin.createTopics({ topics: [{ topic: PROBE_TOPIC, numPartitions: 1, configEntries }], timeout: 5000 });
    }
    await producer.connect();
    await producer.send({ topic: PROBE_TOPIC, acks: -1, timeout: 5000, messages: [{ value: 'ready?' }] });
    return true;
  } finally {
    await Promise.allSettled([admin.disconnect(), producer.disconnect()]);
  }
}

export async function kafkaSpec(
  paths: StackPaths,
  options: { java: Java; ports: KafkaPorts; member?: KafkaMember; security?: StackSecurity | null },
): Promise<ProcessSpec> {
  const { java, ports, member = SINGLE_BROKER, security = null } = options;
  const name = nodeName('kafka', member.id);
  const folder = join(paths.state, 'data', name);
  const dataFolder = join(folder, 'data');
  const classPath = classPathOf(jarFolderOf(paths).kafka);
  if (!existsSync(join(dataFolder, 'meta.properties'))) {
    cpSync(await prepareFormattedFolder(paths, java, classPath), dataFolder, { recursive: true });
    if (member.id > 1) assignIds(dataFolder, member);
  }
  const etc = join(paths.state, 'etc');
  const settings = join(etc, `${name}.properties`);
  const names = [SECURED_LISTENER, ...(ports.front ? ['FRONT'] : [])];
  const secured = security === null ? {} : securedListenerSettings(names, { folder: etc, security });
  writeSettings(settings, { ...settingsOf(ports, dataFolder, member), ...secured });
  // Brokers that exit together would overwrite each other's archive.
  const archive = classArchiveOf(paths, { name: 'kafka', java, classPath, canWrite: member.id === 1 });
  const broker = `127.0.0.1:${ports.kafka}`;
  return {
    name,
    program: java.program,
    args: [...jvmFlagsOf(member), ...archive.flags, log4jFlag, '-cp', classPath, 'kafka.Kafka', settings],
    env: storeEnvironment(),
    folder,
    logFile: logFileOf(paths, name),
    isReady: async () => {
      const accepts = await acceptsRecords(broker);
      if (accepts && security !== null) await setScramPassword(broker, security.kafka);
      return accepts;
    },
    // The first start takes 14 s on a small, idle machine.
    readyDeadlineMs: 120_000,
    stopBy: 'SIGTERM',
    // The first stop also writes the class archive.
    stopDeadlineMs: 30_000,
    ...(archive.keep !== undefined && { onCleanEnd: archive.keep }),
  };
}
