import { randomBytes } from 'node:crypto';
import { TOPICS } from '@playline/contracts';
import type { ErasureReceipt } from '@playline/erasure';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { createTables, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { openLogAccess } from '../../services/operator/src/test/log-access.ts';
import { rowsOf } from '../faults/world/clickhouse.ts';
import { operate as runOperator } from '../faults/world/operate.ts';
import type { ServiceName, ServiceProcess } from '../faults/world/service-process.ts';
import { openWorld, type World } from '../faults/world/world.ts';

const PROJECT = 'erasure';
export const ENVIRONMENT_ID = `${PROJECT}-production`;
const PEPPER = randomBytes(32);
/** A generous limit because the machine may be busy. An erasure waits five seconds for fences and two for Redis. */
export const ERASED_WITHIN_MS = 100_000;
/** Short enough to detect killed members quickly, but long enough for heartbeats on a busy machine. */
const SESSION_TIMEOUT_MS = 6_000;

/** Real stores and one process per service, in a separate folder. */
export type ErasureRig = Awaited<ReturnType<typeof openErasureRig>>;

export async function openErasureRig() {
  const world = await openWorld({ makeTables: createTables });
  try {
    return await openRigOn(world);
  } catch (error) {
    await world.close();
    throw error;
  }
}

async function openRigOn(world: World) {
  const { engine, topicPrefix } = world.deployment;
  const operate = createOperate(world);
  const operateOrThrow = async (...args: string[]) => {
    const { code, stdout, stderr } = await operate(...args);
    if (code !== 0) throw new Error(`${args[0]} ${args[1]} exited with code ${code}:\n${stdout}${stderr}`);
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
  const start = async (service: ServiceName, settings: Record<string, string> = {}) => {
    const started = await world.start(service, settingsWith(settings));
    await started.whenReady();
    return started;
  };
  const keys = { publishable: '', secret: '' };
  await operateOrThrow('projects', 'create', '--name', PROJECT, '--id', PROJECT);
  for (const kind of ['publishable', 'secret'] as const) keys[kind] = await makeKey(operateOrThrow, kind);
  const services = ['gateway', 'identity-linker', 'event-writer', 'eraser'] as const;
  const started = await Promise.all(services.map((service) => start(service)));
  const processes = started.map((each) => [each.service, each] as const);
  const running = Object.fromEntries(processes) as Record<ServiceName, ServiceProcess>;
  const request = createRequest(() => running.gateway, keys);
  return {
    world,
    log,
    redis,
    people,
    rows,
    records,
    /** Running processes. Tests that replace a process store the new process here. */
    running,
    /** Settings for all processes of this rig, including the settings of its world. */
    settingsWith,
    /** Starts another process of a service and resolves when the process is ready. */
    start,
    request,
    operate,
    operateOrThrow,
    keyer: createIdentityKeyer(PEPPER),
    topic: (name: string) => topicPrefix + name,
    send: (messages: readonly object[]) => send(request, messages),
    erase: (subject: Readonly<Record<string, string>>) => erase(request, subject),
    receiptOf: (erasureId: Buffer) => records.readReceipt(erasureId),
    query: (sql: string) => rowsOf(engine, sql),
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
    // Longer than the default because brokers may be slow on a busy machine.
    PUBLISH_DEADLINE_MS: '20000',
    LOG_LEVEL: 'debug',
  };
}

async function makeKey(operateOrThrow: (...args: string[]) => Promise<string>, kind: string): Promise<string> {
  const args = ['--project', PROJECT, '--environment', 'production', '--kind', kind, '--json'];
  return (JSON.parse(await operateOrThrow('keys', 'create', ...args)) as { key: string }).key;
}

function createOperate(world: World) {
  const settings = { REDIS_URL: world.stack.file.redis, IDENTITY_PEPPER: PEPPER.toString('hex') };
  return (...args: string[]) => runOperator(world, args, { settings, maxMs: 0 });
}

function createRequest(gateway: () => ServiceProcess, keys: { publishable: string; secret: string }) {
  return async (path: string, init: RequestInit = {}, secret = false) => {
    const key = secret ? { 'x-service-api-key': keys.secret } : { 'x-service-publishable-key': keys.publishable };
    const headers = { 'content-type': 'application/json', ...key, ...init.headers };
    return await fetch(`${gateway().url}/v1/audience/${path}`, { ...init, headers });
  };
}

type Request = ReturnType<typeof createRequest>;

/** Sends messages and retries after a 500, as clients must. @throws if a message is rejected */
async function send(request: Request, messages: readonly object[]): Promise<void> {
  const post = async () => {
    const response = await request('messages', { method: 'POST', body: JSON.stringify({ messages }) });
    return response.status === 500 ? null : response;
  };
  const response = await until('the gateway accepts the messages', post);
  const body = (await response.json()) as { accepted?: number };
  if (response.status !== 200 || body.accepted !== messages.length)
    throw new Error(`${response.status}: ${JSON.stringify(body).slice(0, 2_000)}`);
}

async function erase(request: Request, subject: Readonly<Record<string, string>>): Promise<Buffer> {
  const response = await request(`data?${new URLSearchParams(subject)}`, { method: 'DELETE' }, true);
  const id = response.headers.get('x-erasure-id');
  if (response.status !== 202 || id === null) throw new Error(`${response.status}: ${await response.text()}`);
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

export function awaitReceipt(rig: ErasureRig, erasureId: Buffer): Promise<ErasureReceipt> {
  return until('the erasure has its receipt', () => rig.receiptOf(erasureId), ERASED_WITHIN_MS);
}

/** Resumes paused processes and restarts processes that a failed test has ended. */
export async function recover(rig: ErasureRig): Promise<void> {
  await rig.world.proxies.openAll();
  for (const process of Object.values(rig.running)) {
    process.signal('SIGCONT');
    if (!process.isAlive) rig.running[process.service] = await rig.start(process.service);
  }
}
