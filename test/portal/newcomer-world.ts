import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CHECKOUT, freePorts } from '@playline/infra/local';
import {
  bareEnvironment,
  openOwnStores,
  openRedisDatabase,
  openServiceProcesses,
  runStatement,
} from '@playline/testkit';
import { type AnalystsEngine, openAnalystsEngine } from '../../infra/clickhouse/test/analysts-engine.ts';

const run = promisify(execFile);
const mainOf = (service: string) => join(CHECKOUT, 'services', service, 'src', 'main.ts');

export type NewcomerWorld = Awaited<ReturnType<typeof openNewcomerWorld>>;

// Starts all services with empty stores, as on the first start of a deployment. Uses Kafka and Redis of the test run,
// because starting a separate stack takes half a minute, and a ClickHouse with the production accounts, because the
// row policies of analysts apply only to its database.
export async function openNewcomerWorld() {
  const cleanups: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const each of cleanups.reverse()) await each();
  };
  try {
    const stores = await openOwnStores();
    cleanups.push(stores.close);
    const redis = await openRedisDatabase();
    cleanups.push(redis.close);
    const engine = await openAnalystsEngine();
    cleanups.push(engine.close);
    const urls = { REDIS_URL: redis.url, CLICKHOUSE_URL: engine.url, CLICKHOUSE_DATABASE: 'playline' };
    const settings = createSettings(stores.prefix, { ...stores.environment, ...urls, ...toLogin(engine, 'writer') });
    const operate = createOperate(settings, cleanups);
    await operate('identity', 'init');
    const query = (sql: string) => runStatement(engine.accountOf('operator'), sql);
    return { ...(await startServices(settings, toPortalSettings(engine), cleanups)), operate, query, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function toLogin(engine: AnalystsEngine, account: string): Record<string, string> {
  const { user, password } = engine.accountOf(account);
  return { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password };
}

/** As in the local stack, the portal has its own account and assigns accounts to analysts. */
function toPortalSettings(engine: AnalystsEngine): Record<string, string> {
  return {
    ...toLogin(engine, 'portal'),
    CLICKHOUSE_ACCOUNTS_PASSWORD: engine.accountOf('accounts').password,
    ANALYST_ACCOUNTS: engine.pool.map(({ account, password }) => `${account}=${password}`).join(','),
    PORTAL_SECRET: randomBytes(32).toString('hex'),
  };
}

const toGroup = (prefix: string, service: string) => prefix + service;

function createSettings(prefix: string, stores: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...stores,
    IDENTITY_PEPPER: randomBytes(32).toString('hex'),
    LOG_LEVEL: 'error',
    LINKER_GROUP: toGroup(prefix, 'identity-linker'),
    WRITER_GROUP: toGroup(prefix, 'event-writer'),
  };
}

function createOperate(settings: Readonly<Record<string, string>>, cleanups: (() => Promise<void>)[]) {
  // Operator commands use the stack in the working directory, so they are run in an empty directory.
  const cwd = mkdtempSync(join(tmpdir(), 'playline-newcomer-'));
  cleanups.push(async () => rmSync(cwd, { recursive: true, force: true }));
  const env = { ...bareEnvironment(), ...settings };
  /** Runs an operator command. @returns the output of the command */
  return async (...args: string[]) => (await run(process.execPath, [mainOf('operator'), ...args], { cwd, env })).stdout;
}

async function startServices(
  settings: Readonly<Record<string, string>>,
  portal: Readonly<Record<string, string>>,
  cleanups: (() => Promise<void>)[],
) {
  const start = async (service: string, overrides: Readonly<Record<string, string>> = {}) => {
    const group = { CONSUMER_GROUP: toGroup(settings.TOPIC_PREFIX ?? '', service) };
    const processes = openServiceProcesses(mainOf(service), { ...settings, ...group });
    cleanups.push(processes.close);
    await processes.start(overrides);
  };
  const [first = 0, second = 0, third = 0] = await freePorts(3);
  const gateways = [first, second].map((port) => `http://127.0.0.1:${port}`);
  await Promise.all([
    start('gateway', { HTTP_PORT: String(first) }),
    start('gateway', { HTTP_PORT: String(second) }),
    ...['identity-linker', 'event-writer'].map((service) => start(service)),
    // Only one erasure is requested, so the eraser need not wait for further requests.
    start('eraser', { BATCH_WINDOW_MS: '100' }),
    start('portal', { ...portal, HTTP_PORT: String(third), GATEWAY_URL: gateways[0]! }),
  ]);
  return { gateways, portal: `http://localhost:${third}` };
}
