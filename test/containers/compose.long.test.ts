// Runs docker-compose.yml in a fresh clone, with the commands in the section "Containers" of README.md.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CHECKOUT, freePorts } from '@playline/infra/local';
import { until } from '@playline/testkit/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasEngine } from './engine.ts';
import { provideImages } from './substitutes.ts';

const MINUTE_MS = 60_000;
/** A restart takes up to 30 s on two idle cores, and several times as long while all tests run. */
const RECOVERY_MS = 3 * MINUTE_MS;
const STORES = ['kafka', 'registry', 'redis', 'clickhouse'];
const SERVICES = [
  ...['gateway', 'identity-linker', 'event-writer', 'activity-writer', 'chain-indexer', 'eraser'],
  ...['chain-api', 'minter', 'portal'],
];
/** The published ports in README.md and docker-compose.yml, and their settings. */
const PORTS = {
  KAFKA: 9092,
  REGISTRY: 8081,
  REDIS: 6379,
  CLICKHOUSE: 8123,
  GATEWAY: 8080,
  CHAIN_API: 8082,
  PORTAL: 8084,
};

const folder = mkdtempSync(join(tmpdir(), 'playline-containers-'));
const clone = join(folder, 'playline');
const ports = new Map<string, number>();
/** A separate Compose project, so that the test does not change a deployment on the same engine. */
const env: NodeJS.ProcessEnv = { ...process.env, COMPOSE_PROJECT_NAME: 'playline-test' };

/** Runs a shell command in the clone. @returns its standard output */
async function sh(command: string, cwd = clone): Promise<string> {
  const usesPorts = Object.entries(PORTS).reduce(
    (text, [name, port]) =>
      text.replaceAll(new RegExp(`(127\\.0\\.0\\.1|localhost):${port}\\b`, 'g'), `$1:${ports.get(name)}`),
    command,
  );
  const { stdout } = await promisify(execFile)('bash', ['-ec', usesPorts], { cwd, env, maxBuffer: 1e8 });
  return stdout.trim();
}

const urlOf = (name: keyof typeof PORTS) => `http://127.0.0.1:${ports.get(name)}`;
const operator = (args: string) => sh(`docker compose run --rm operator ${args}`);
const containerOf = (service: string) => sh(`docker compose ps --all --quiet ${service}`);
const inspect = async (service: string, format: string) =>
  sh(`docker inspect --format '${format}' ${await containerOf(service)}`);
const secretOf = (name: string) =>
  new RegExp(`^${name}=(.+)$`, 'm').exec(readFileSync(join(clone, '.env'), 'utf8'))?.[1] ?? '';
const redis = (command: string) =>
  sh(`docker compose exec -T redis sh -c 'REDISCLI_AUTH="$REDIS_PASSWORD" redis-cli ${command}'`);

async function query(statement: string): Promise<string> {
  const authorization = `Basic ${btoa(`operator:${secretOf('CLICKHOUSE_OPERATOR_PASSWORD')}`)}`;
  const url = `${urlOf('CLICKHOUSE')}/?database=playline`;
  const response = await fetch(url, { method: 'POST', body: statement, headers: { authorization } });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim();
}

/** The commands in README.md: from the secrets to the portal link, and from the event to its row. */
const [, section = ''] = readFileSync(join(CHECKOUT, 'README.md'), 'utf8').split('\n## Containers\n');
const [start = '', event = ''] = [...section.matchAll(/```sh\n([^`]+)\n```/g)].map(([, block = '']) => block);
const [createSecrets = '', up = '', createProject = '', createKey = '', createLink = ''] = start.split('\n');
const [postEvent = '', findEvent = ''] = event.split(/\n(?=password=)/);

const readVolumes = async () => (await sh('docker volume ls --quiet', folder)).split('\n').sort();

let volumesBefore: string[] = [];
let key = '';
let link = '';

/** Posts the event of README.md until its row is stored. */
async function assertRoundTrip(player: string): Promise<void> {
  const post = `KEY='${key}'; ${postEvent.replace('player-1', player)}`;
  const isAccepted = async () => JSON.parse(await sh(post)).accepted === 1;
  await until(`the gateway accepts an event of ${player}`, isAccepted, RECOVERY_MS);
  const find = findEvent.replace('player-1', player);
  const isStored = async () => (await sh(find)).includes(`level_started\t${player}`);
  await until(`the row of ${player} is stored`, isStored, RECOVERY_MS);
}

const statesOf = async () =>
  (await sh('docker compose ps --format json')).split('\n').map((line) => JSON.parse(line) as Record<string, string>);

async function areAllHealthy(): Promise<boolean> {
  const states = await statesOf();
  return states.length === STORES.length + SERVICES.length && states.every(({ Health }) => Health === 'healthy');
}

const assertAllHealthy = () => until('all containers are healthy', areAllHealthy, RECOVERY_MS);

async function readSchemaIds(): Promise<unknown[]> {
  const read = async (path: string) => (await fetch(`${urlOf('REGISTRY')}/apis/ccompat/v7/subjects${path}`)).json();
  const subjects = ((await read('')) as string[]).sort();
  return Promise.all(subjects.map((subject) => read(`/${encodeURIComponent(subject)}/versions/latest`)));
}

const readIds = async () => ({
  epoch: await redis('get identity:epoch'),
  people: await query('SELECT count(), uniqExact(person_key) FROM events_identified'),
  schemas: await readSchemaIds(),
});

describe.skipIf(!hasEngine())('docker-compose.yml', { timeout: 10 * MINUTE_MS }, () => {
  beforeAll(async () => {
    const substitutes = await provideImages(console.error);
    console.log(`substitutes: ${substitutes.join(', ') || 'none'}`);
    await sh(`umask 077 && git clone --quiet '${CHECKOUT}' '${clone}'`, folder);
    volumesBefore = await readVolumes();
    const free = await freePorts(Object.keys(PORTS).length);
    for (const [index, name] of Object.keys(PORTS).entries()) ports.set(name, free[index] ?? 0);
    writeFileSync(join(clone, '.env'), [...ports].map(([name, port]) => `${name}_PORT=${port}\n`).join(''));
    await sh(createSecrets);
    const start = performance.now();
    await sh(`umask 077 && ${up}`);
    console.log(`up: ${Math.round((performance.now() - start) / 1000)} s`);
    await sh(createProject);
    key = (await sh(createKey)).split('\n').at(-1) ?? '';
    link = (await sh(createLink)).split('\n').at(-1) ?? '';
  }, 60 * MINUTE_MS);

  afterAll(async () => {
    await sh('docker compose --profile operator down --volumes --remove-orphans');
    rmSync(folder, { recursive: true });
  }, 2 * MINUTE_MS);

  it('runs every store and service from a clone with umask 077, after the commands in README.md', async () => {
    await assertAllHealthy();
    expect((await statesOf()).map(({ Service }) => Service).sort()).toEqual([...STORES, ...SERVICES].sort());
  });

  it('stores the event of README.md, which was posted with the first key', async () => {
    await assertRoundTrip('player-1');
  });

  it('opens the page for the first administrator with the first portal link', async () => {
    const response = await fetch(link);
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/<form[^>]*method="post"/);
  });

  it('repeats no set-up step when an operator command runs', async () => {
    const readStarts = () =>
      Promise.all(['topics', 'tables', 'identity'].map((each) => inspect(each, '{{.State.StartedAt}}')));
    const before = await readStarts();
    await operator('projects list');
    expect(await readStarts()).toEqual(before);
  });

  it.each([...STORES, ...SERVICES])('runs %s without root', async (service) => {
    const status = readFileSync(`/proc/${await inspect(service, '{{.State.Pid}}')}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\t[1-9]/m);
  });

  it.each(SERVICES)('runs %s with a read-only root from an image with its version and commit', async (service) => {
    expect(await inspect(service, '{{.HostConfig.ReadonlyRootfs}}')).toBe('true');
    const labels = JSON.parse(await inspect(service, '{{json .Config.Labels}}'));
    const { version } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8'));
    expect(labels['org.opencontainers.image.version']).toBe(version);
    expect(labels['org.opencontainers.image.revision']).toBe(await sh('git rev-parse HEAD'));
  });

  it('stores generated game traffic without differences, which verify confirms', async () => {
    const addresses = `--gateway ${urlOf('GATEWAY')} --key ${key} --clickhouse-url ${urlOf('CLICKHOUSE')}`;
    const account = `--clickhouse-user operator --clickhouse-password ${secretOf('CLICKHOUSE_OPERATOR_PASSWORD')}`;
    const traffic = '--project my-game --messages 5000 --rate 0 --json';
    const program = `'${process.execPath}' '${join(CHECKOUT, 'test/simulate/main.ts')}'`;
    console.log(await sh(`${program} ${addresses} ${account} --clickhouse-database playline ${traffic}`));
    console.log(await operator('verify'));
  });

  it.each([...STORES, ...SERVICES])('restarts a killed %s and loses no event', async (service) => {
    const readRestarts = async () => Number(await inspect(service, '{{.RestartCount}}'));
    const [start, restarts] = [performance.now(), await readRestarts()];
    process.kill(Number(await inspect(service, '{{.State.Pid}}')), 'SIGKILL');
    await until(`${service} restarts`, async () => (await readRestarts()) > restarts, RECOVERY_MS);
    await assertAllHealthy();
    await assertRoundTrip(`killed-${service}`);
    console.log(`${service}: back after ${Math.round((performance.now() - start) / 1000)} s`);
  });

  it('keeps events, people, schema ids and the epoch over down and up', async () => {
    const before = await readIds();
    await sh('docker compose down');
    const left = (await readVolumes()).filter((name) => !volumesBefore.includes(name));
    expect(left).toEqual(['playline-test_clickhouse-data', 'playline-test_kafka-data', 'playline-test_redis-data']);
    await sh(up);
    expect(await readIds()).toEqual(before);
    await assertRoundTrip('after-down');
    console.log(await operator('verify'));
  });
});
