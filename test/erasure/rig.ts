import { randomBytes } from 'node:crypto';
import { TOPICS } from '@playline/contracts';
import type { ErasureReceipt, ErasureRecords, ErasureRows } from '@playline/erasure';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { createIdentityKeyer, type IdentityKeyer, type People } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { createTables, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { type LogAccess, openLogAccess } from '../../services/operator/src/test/log-access.ts';
import { rowsOf } from '../faults/world/clickhouse.ts';
import { type Operated, operate as runOperator } from '../faults/world/operate.ts';
import type { ServiceName, ServiceProcess } from '../faults/world/service-process.ts';
import { openWorld, type World } from '../faults/world/world.ts';

const PROJECT = 'erasure';
export const ENVIRONMENT_ID = `${PROJECT}-production`;
const PEPPER = randomBytes(32);
/** Generous. An erasure itself waits five seconds for fences and two for Redis, and the machine may be busy. */
export const ERASED_WITHIN_MS = 100_000;
/** Short, so that a killed member is missed soon, but long enough for heartbeats on a busy machine. */
const SESSION_TIMEOUT_MS = 6_000;

/** Real stores and a process of each service, all in a separate folder. */
export interface ErasureRig {
  readonly world: World;
  readonly log: LogAccess;
  readonly redis: Redis;
  readonly people: People;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly keyer: IdentityKeyer;
  /** The running processes. A test that ends one stores its successor here. */
  readonly running: Record<ServiceName, ServiceProcess>;
  /** The full name of a topic, with the prefix of this rig. */
  topic(name: string): string;
  /** Settings of every process of this rig, including those of its world. */
  settingsWith(more: Record<string, string>): Record<string, string>;
  /** Starts one more process of a service; resolves when it is ready. */
  start(service: ServiceName, settings?: Record<string, string>): Promise<ServiceProcess>;
  /** Sends a request to the gateway. `secret`: with the secret key. */
  request(path: string, init?: RequestInit, secret?: boolean): Promise<Response>;
  /** Sends messages, again after a 500. Expects that all are accepted. */
  send(messages: readonly object[]): Promise<void>;
  /** Requests an erasure. @returns its id */
  erase(subject: Readonly<Record<string, string>>): Promise<Buffer>;
  /** The receipt, or null. */
  receiptOf(erasureId: Buffer): Promise<ErasureReceipt | null>;
  query(sql: string): Promise<string[][]>;
  /** Runs a command of the operator. */
  operate(...args: string[]): Promise<Operated>;
  /** Runs a command of the operator. @throws Error with its output unless it ends with 0 */
  operateWell(...args: string[]): Promise<string>;
  close(): Promise<void>;
}

export async function openErasureRig(): Promise<ErasureRig> {
  const world = await openWorld({ makeTables: createTables });
  try {
    return await openOn(world);
  } catch (error) {
    await world.close();
    throw error;
  }
}

async function openOn(world: World): Promise<ErasureRig> {
  const { engine, topicPrefix } = world.deployment;
  const operate = createOperate(world);
  const operateWell = async (...args: string[]) => {
    const { code, stdout, stderr } = await operate(...args);
    if (code !== 0) throw new Error(`${args[0]} ${args[1]} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  };
  const log = await openLogAccess(world.stack.file.kafka);
  const redis = new Redis(world.stack.file.redis);
  const people = await openRedisPeople({
    url: world.stack.file.redis,
    linkTopic: topicPrefix + TOPICS.identityLinks.name,
    consentTopic: topicPrefix + TOPICS.consents.name,
  });
  const [rows, records] = [openErasureRows(engine), openErasureRecords(engine)];
  const settingsWith = (more: Record<string, string>) => ({ ...settingsOf(world), ...more });
  const start: ErasureRig['start'] = async (service, settings = {}) => {
    const started = await world.start(service, settingsWith(settings));
    await started.whenReady();
    return started;
  };
  const keys = { publishable: '', secret: '' };
  await operateWell('projects', 'create', '--name', PROJECT, '--id', PROJECT);
  for (const kind of ['publishable', 'secret'] as const) keys[kind] = await makeKey(operateWell, kind);
  const services = ['gateway', 'identity-linker', 'event-writer', 'eraser'] as const;
  const started = await Promise.all(services.map((service) => start(service)));
  const running = Object.fromEntries(started.map((each) => [each.service, each])) as ErasureRig['running'];
  const request = createRequest(() => running.gateway, keys);
  return {
    world,
    log,
    redis,
    people,
    rows,
    records,
    running,
    settingsWith,
    start,
    request,
    operate,
    operateWell,
    keyer: createIdentityKeyer(PEPPER),
    topic: (name) => topicPrefix + name,
    send: (messages) => send(request, messages),
    erase: (subject) => erase(request, subject),
    receiptOf: (erasureId) => records.readReceipt(erasureId),
    query: (sql) => rowsOf(engine, sql),
    async close() {
      redis.disconnect();
      await people.close();
      await Promise.all([rows.close(), records.close(), log.close()]);
      await world.close();
    },
  };
}

function settingsOf(world: World): Record<string, string> {
  return {
    IDENTITY_PEPPER: PEPPER.toString('hex'),
    LINKER_GROUP: world.groupOf('identity-linker'),
    WRITER_GROUP: world.groupOf('event-writer'),
    SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
    BATCH_WINDOW_MS: '100',
    // Brokers may be slow on a busy machine, so the gateway waits longer than usual.
    PUBLISH_DEADLINE_MS: '20000',
    LOG_LEVEL: 'debug',
  };
}

async function makeKey(operateWell: ErasureRig['operateWell'], kind: string): Promise<string> {
  const args = ['--project', PROJECT, '--environment', 'production', '--kind', kind, '--json'];
  return (JSON.parse(await operateWell('keys', 'create', ...args)) as { key: string }).key;
}

function createOperate(world: World): ErasureRig['operate'] {
  const settings = { REDIS_URL: world.stack.file.redis, IDENTITY_PEPPER: PEPPER.toString('hex') };
  return (...args) => runOperator(world, args, { settings, maxMs: 0 });
}

function createRequest(
  gateway: () => ServiceProcess,
  keys: { publishable: string; secret: string },
): ErasureRig['request'] {
  return async (path, init = {}, secret = false) => {
    const key = secret ? { 'x-service-api-key': keys.secret } : { 'x-service-publishable-key': keys.publishable };
    const headers = { 'content-type': 'application/json', ...key, ...init.headers };
    return await fetch(`${gateway().url}/v1/audience/${path}`, { ...init, headers });
  };
}

/** Sends the same messages again after a 500, as clients must. */
async function send(request: ErasureRig['request'], messages: readonly object[]): Promise<void> {
  const post = async () => {
    const answer = await request('messages', { method: 'POST', body: JSON.stringify({ messages }) });
    return answer.status === 500 ? null : answer;
  };
  const answer = await until('the gateway takes the messages', post);
  const body = (await answer.json()) as { accepted?: number };
  if (answer.status !== 200 || body.accepted !== messages.length)
    throw new Error(`${answer.status}: ${JSON.stringify(body).slice(0, 2_000)}`);
}

async function erase(request: ErasureRig['request'], subject: Readonly<Record<string, string>>): Promise<Buffer> {
  const answer = await request(`data?${new URLSearchParams(subject)}`, { method: 'DELETE' }, true);
  const id = answer.headers.get('x-erasure-id');
  if (answer.status !== 202 || id === null) throw new Error(`${answer.status}: ${await answer.text()}`);
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

/** Waits for the receipt of an erasure. */
export function erased(rig: ErasureRig, erasureId: Buffer): Promise<ErasureReceipt> {
  return until('the erasure has its receipt', () => rig.receiptOf(erasureId), ERASED_WITHIN_MS);
}

/** Resumes and restarts whatever a failed test has stopped or ended. */
export async function recover(rig: ErasureRig): Promise<void> {
  await rig.world.wires.openAll();
  for (const process of Object.values(rig.running)) {
    process.signal('SIGCONT');
    if (!process.isAlive) rig.running[process.service] = await rig.start(process.service);
  }
}
