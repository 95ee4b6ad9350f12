import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RECORD_TOPICS, readDeadReasons, readRecords } from './log.ts';
import { ADDED, createNextRelease, type Release, THIS_RELEASE } from './release.ts';
import { type Caller, postRound, type Round } from './traffic.ts';
import { openWorld, type RunningService, type UpgradeWorld } from './world.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

let world: UpgradeWorld;
let next: ReturnType<typeof createNextRelease>;
let gateways: { old: RunningService; new: RunningService };
let readers: { linker: RunningService; writer: RunningService };
let keys: Pick<Caller, 'publishable' | 'secret'>;
const rounds: Round[] = [];

const releaseOf = (name: Release['name']) => (name === 'this' ? THIS_RELEASE : next);
const createKey = async (release: Release, kind: string, environment = 'production') => {
  const where = ['--project', world.project, '--environment', environment, '--kind', kind, '--json'];
  return (JSON.parse(await world.operate(release, 'keys', 'create', ...where)) as { key: string }).key;
};

async function post(gateway: RunningService): Promise<void> {
  const tag = `r${rounds.length}`;
  rounds.push(await postRound({ url: gateway.url, ...keys }, tag));
}

/** Waits until all posted messages are stored or a record becomes a dead letter. */
async function settle(): Promise<void> {
  const expected = {
    events: String(2 * rounds.length),
    persons: String(rounds.length),
    consents: String(rounds.length),
    rejections: String(rounds.length),
  };
  let found: unknown = null;
  const isSettled = async () => {
    [found] = await world.query(`SELECT
      toString((SELECT count() FROM events)) AS events,
      toString((SELECT count() FROM (SELECT person_key FROM events_identified GROUP BY person_key
        HAVING count() = 2 AND person_key != toFixedString('', 16)))) AS persons,
      toString((SELECT count() FROM consent_log)) AS consents,
      toString((SELECT uniqExact(trace_id) FROM message_rejections)) AS rejections`);
    return JSON.stringify(found) === JSON.stringify(expected) || (await readDeadReasons(world.prefix)).length > 0;
  };
  await until('all records are stored', isSettled).catch(() => {});
  expect(await readDeadReasons(world.prefix)).toEqual([]);
  expect(found).toEqual(expected);
}

async function useReaders(linker: Release['name'], writer: Release['name']): Promise<void> {
  if (readers.linker.release !== linker) {
    await readers.linker.stop();
    readers.linker = await world.start(releaseOf(linker), 'identity-linker');
  }
  if (readers.writer.release === writer) return;
  await readers.writer.stop();
  readers.writer = await world.start(releaseOf(writer), 'event-writer');
}

beforeAll(async () => {
  next = createNextRelease();
  world = await openWorld();
  await world.operate(THIS_RELEASE, 'identity', 'init');
  await world.operate(THIS_RELEASE, 'projects', 'create', '--name', world.project, '--id', world.project);
  keys = { publishable: await createKey(THIS_RELEASE, 'publishable'), secret: await createKey(THIS_RELEASE, 'secret') };
  const [gateway, linker, writer] = await Promise.all([
    world.start(THIS_RELEASE, 'gateway'),
    world.start(THIS_RELEASE, 'identity-linker'),
    world.start(THIS_RELEASE, 'event-writer'),
  ]);
  readers = { linker, writer };
  await until('the first round is accepted', () => post(gateway).then(() => true));
  await world.deploy(next);
  await gateway.stop();
  const [oldGateway, newGateway] = await Promise.all([
    world.start(THIS_RELEASE, 'gateway'),
    world.start(next, 'gateway'),
  ]);
  gateways = { old: oldGateway, new: newGateway };
});
afterAll(async () => {
  await world?.close();
  next?.remove();
});

describe('a rollout that changes every schema', () => {
  it.each([
    ['this', 'this'],
    ['next', 'this'],
    ['next', 'next'],
    ['this', 'next'],
  ] as const)('loses no messages (linker: %s release, writer: %s release)', async (linker, writer) => {
    await useReaders(linker, writer);
    for (const gateway of [gateways.old, gateways.new])
      await until('a round is accepted', () => post(gateway).then(() => true));
    await settle();
  });

  it('only records written by the next release have a value in the new field', async () => {
    const rows = await world.query<{ n: string; added_later: string }>(
      'SELECT added_later, toString(count()) AS n FROM events GROUP BY added_later ORDER BY added_later',
    );
    // The old writer does not fill the new column. It stored two of the new gateway's four rounds.
    expect(rows).toEqual([
      { added_later: '', n: String(2 * (rounds.length - 2)) },
      { added_later: ADDED.value, n: '4' },
    ]);
  });

  it('the operator commands of both releases can write and read all access records', async () => {
    const projectArgs = ['--project', world.project];
    const environment = ['--environment', 'production'];
    for (const [index, release] of [next, THIS_RELEASE].entries()) {
      const name = release.name;
      const contract = `0x${String(index + 1).padStart(40, '0')}`;
      const where = ['--chain', 'demo-chain', '--contract', contract, '--name', name];
      const account = ['--name', name, ...projectArgs, '--role', 'developer', '--origin', 'https://portal.test'];
      await Promise.all([
        createKey(release, index === 0 ? 'publishable' : 'secret', 'development'),
        world.operate(release, 'collections', 'link', ...projectArgs, ...environment, ...where),
        world.operate(release, 'accounts', 'invite', ...account),
        world.operate(release, 'projects', 'add-environment', ...projectArgs, '--name', name, '--kind', 'production'),
        world.operate(release, 'keys', 'create', '--kind', 'rate-limit', '--partner', name, '--calls', '5'),
      ]);
    }
    for (const release of [THIS_RELEASE, next]) {
      await world.operate(release, 'keys', 'rebuild');
      const listed = await Promise.all([
        world.operate(release, 'keys', 'list', ...projectArgs, '--json'),
        world.operate(release, 'collections', 'list', ...projectArgs, '--json'),
        world.operate(release, 'accounts', 'list', '--json'),
        world.operate(release, 'keys', 'list', '--kind', 'rate-limit'),
      ]);
      expect(listed.map((lines) => lines.trim().split('\n').length)).toEqual([4, 2, 2, 2]);
      const project = JSON.parse(await world.operate(release, 'projects', 'show', ...projectArgs, '--json'));
      expect(project.environments.map((each: { name: string }) => each.name)).toEqual([
        'production',
        'development',
        'next',
        'this',
      ]);
    }
  });

  it('every record on every topic contains the schema id of the release that wrote it', async () => {
    for (const topic of RECORD_TOPICS) {
      const records = await readRecords(world.prefix, topic);
      expect(records.filter(({ error }) => error !== null)).toEqual([]);
      const isNew = (fields: readonly string[]) => fields.includes(ADDED.name);
      const ids = (isNewRelease: boolean) =>
        new Set(records.filter(({ fields }) => isNew(fields) === isNewRelease).map((r) => r.schemaId));
      const { name } = topic;
      expect({ name, old: ids(false).size, new: ids(true).size }).toEqual({ name, old: 1, new: 1 });
      for (const { fields, record } of records) if (isNew(fields)) expect(record![ADDED.name]).toBe(ADDED.value);
    }
    expect(await readRecords(world.prefix, TOPICS.erasures)).toHaveLength(rounds.length);
  });

  it('the `verify` command of both releases passes', async () => {
    const group = ['--group', `${world.prefix}event-writer`];
    await Promise.all([THIS_RELEASE, next].map((release) => world.operate(release, 'verify', ...group)));
  });
});
