import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CHECKOUT, freePorts } from '@playline/infra/local';
import { bareEnvironment, openOwnStores, openRedisDatabase, openServiceProcesses } from '@playline/testkit';

const run = promisify(execFile);
const mainOf = (service: string) => join(CHECKOUT, 'services', service, 'src', 'main.ts');

export type NewcomerWorld = Awaited<ReturnType<typeof openNewcomerWorld>>;

// Processes of all services with empty stores, as after a first start. They are the stores of the test run, because
// starting a stack takes half a minute.
export async function openNewcomerWorld() {
  const closing: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const each of closing.reverse()) await each();
  };
  try {
    const [own, redis] = await Promise.all([openOwnStores(), openRedisDatabase()]);
    closing.push(own.close, redis.close);
    const settings = settingsOf(own.prefix, { ...own.environment, REDIS_URL: redis.url });
    const operate = createOperate(settings, closing);
    await operate('identity', 'init');
    return { ...(await startServices(settings, closing)), operate, query: own.query, close };
  } catch (fault) {
    await close();
    throw fault;
  }
}

const groupOf = (prefix: string, service: string) => prefix + service;

function settingsOf(prefix: string, stores: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...stores,
    IDENTITY_PEPPER: randomBytes(32).toString('hex'),
    LOG_LEVEL: 'error',
    LINKER_GROUP: groupOf(prefix, 'identity-linker'),
    WRITER_GROUP: groupOf(prefix, 'event-writer'),
  };
}

function createOperate(settings: Readonly<Record<string, string>>, closing: (() => Promise<void>)[]) {
  // Commands use a stack of their working folder. This folder has none.
  const cwd = mkdtempSync(join(tmpdir(), 'playline-newcomer-'));
  closing.push(async () => rmSync(cwd, { recursive: true, force: true }));
  const env = { ...bareEnvironment(), ...settings };
  /** Runs an operator command. @returns its output */
  return async (...args: string[]) => (await run(process.execPath, [mainOf('operator'), ...args], { cwd, env })).stdout;
}

async function startServices(settings: Readonly<Record<string, string>>, closing: (() => Promise<void>)[]) {
  const start = async (service: string, own: Readonly<Record<string, string>> = {}) => {
    const group = { CONSUMER_GROUP: groupOf(settings.TOPIC_PREFIX ?? '', service) };
    const processes = openServiceProcesses(mainOf(service), { ...settings, ...group });
    closing.push(processes.close);
    await processes.start(own);
  };
  const [first = 0, second = 0, third = 0] = await freePorts(3);
  const gateways = [first, second].map((port) => `http://127.0.0.1:${port}`);
  const secret = { PORTAL_SECRET: randomBytes(32).toString('hex') };
  await Promise.all([
    start('gateway', { HTTP_PORT: String(first) }),
    start('gateway', { HTTP_PORT: String(second) }),
    ...['identity-linker', 'event-writer'].map((service) => start(service)),
    // Only one erasure is requested.
    start('eraser', { BATCH_WINDOW_MS: '100' }),
    start('portal', { ...secret, HTTP_PORT: String(third), GATEWAY_URL: gateways[0]! }),
  ]);
  return { gateways, portal: `http://localhost:${third}` };
}
