// The steps of infra/UPGRADE.md, one test per step. All tests share one deployment, so they run in order.
import { randomUUID } from 'node:crypto';
import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { lineOf } from '../../services/operator/src/import/test/lines.ts';
import { RECORD_TOPICS, readDeadReasons, readRecords } from './log.ts';
import { readOrder } from './pages.ts';
import { ADDED, createNextRelease, type Release, THIS_RELEASE } from './release.ts';
import { type Load, openLoad, type Round } from './traffic.ts';
import { openWorld, type RunningService, type UpgradeWorld } from './world.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });
/** Other test files use the same cores, on which an erasure once took more than three minutes. */
const WAIT_MS = 240_000;

const TESTED = ['eraser', 'event-writer', 'activity-writer', 'identity-linker', 'gateway'];
/** In the order of the page. */
const ORDER = readOrder().filter((name) => TESTED.includes(name));

/** Gateways and erasers of all combinations of releases process a request. */
const ERASE_AFTER = ['event-writer', 'gateway'];

interface ErasedRound extends Round {
  readonly erasureId: string;
}

let world: UpgradeWorld;
let next: ReturnType<typeof createNextRelease>;
let load: Load;
const running = new Map<string, RunningService>();
/** URLs of gateways of the next release. */
const nextGateways = new Set<string>();
const erased: ErasedRound[] = [];
/** Ids of imported activities. */
const activities: string[] = [];

const verify = (release: Release) => world.operate(release, 'verify', '--group', `${world.prefix}event-writer`);
const createKey = async (release: Release, kind: string, environment = 'production') => {
  const where = ['--project', world.project, '--environment', environment, '--kind', kind, '--json'];
  return (JSON.parse(await world.operate(release, 'keys', 'create', ...where)) as { key: string }).key;
};

const idsOf = (rounds: readonly Round[]) => rounds.flatMap(({ messageIds }) => messageIds);
const keptRounds = () => load.rounds.filter(({ tag }) => !erased.some((each) => each.tag === tag));
const idsFrom = async (sql: string) => (await world.query<{ id: string }>(sql)).map(({ id }) => id);
const countFrom = async (sql: string) => Number((await world.query<{ n: string }>(sql))[0]?.n);

/** Counts persons with two messages, which are linked only if the linker has processed the second one. */
const countPersons = (condition: string) =>
  countFrom(`SELECT toString(count()) AS n FROM (SELECT person_key FROM events_identified
    WHERE person_key != toFixedString('', 16) AND ${condition} GROUP BY person_key HAVING count() = 2)`);

/** Imports an activity with the command of each release, so that the activity writer reads records of both. */
async function importActivities(): Promise<void> {
  const group = ['--writer-group', `${world.prefix}activity-writer`];
  const importOne = async (release: Release) => {
    const line = { ...lineOf(1), id: randomUUID() };
    const path = world.writeFile(`${release.name}.ndjson`, JSON.stringify(line));
    await world.operate(release, 'import', '--topic', TOPICS.activities.name, ...group, path);
    activities.push(line.id);
  };
  await Promise.all([THIS_RELEASE, next].map(importOne));
}

const storedActivities = () => idsFrom('SELECT toString(id) AS id FROM activities');

/** Waits until every acknowledged message and activity is stored, the newest link applies, and erasures are accepted. */
async function settle(): Promise<void> {
  const sent = idsOf(load.rounds);
  const newest = keptRounds().at(-1)!.messageIds;
  const isSettled = async () => {
    const stored = new Set(await idsFrom('SELECT toString(message_id) AS id FROM inserted_messages'));
    const erasures = await countFrom('SELECT toString(uniqExact(erasure_id)) AS n FROM erasure_requests');
    if (erasures < erased.length || sent.some((id) => !stored.has(id))) return false;
    if ((await storedActivities()).length < activities.length) return false;
    return (await countPersons(`message_id IN (${newest.map((id) => `'${id}'`).join(', ')})`)) === 1;
  };
  await until('all acknowledged requests are processed', isSettled, WAIT_MS).catch(async (error) => {
    expect(await readDeadReasons(world.prefix)).toEqual([]);
    throw error;
  });
}

/** Replaces a process. At some services, requests an erasure, which later replacements may interrupt. */
async function replace(service: string, release: Release): Promise<void> {
  const previous = running.get(service)!;
  if (service === 'activity-writer') {
    await importActivities();
    await settle();
  }
  // Clients would otherwise see refused connections while the only gateway is replaced.
  if (service !== 'gateway') expect(await previous.stop()).toBe(0);
  const started = await world.start(release, service);
  expect(started.version).toBe(release.version);
  running.set(service, started);
  if (service === 'gateway') {
    if (release.name === 'next') nextGateways.add(started.url);
    load.gateways.add(started.url);
    load.gateways.delete(previous.url);
    expect(await previous.stop()).toBe(0);
  }
  if (!ERASE_AFTER.includes(service)) return settle();
  const round = await load.post(`leaver-${erased.length}`);
  await settle();
  erased.push({ ...round, erasureId: await load.requestErasure(round) });
}

async function awaitReceipts(): Promise<void> {
  const isComplete = async () => {
    const receipts = new Set(await idsFrom('SELECT toString(erasure_id) AS id FROM erasure_receipts'));
    return erased.every(({ erasureId }) => receipts.has(erasureId));
  };
  await until('every erasure has a receipt', isComplete, WAIT_MS);
}

beforeAll(async () => {
  next = createNextRelease();
  world = await openWorld();
  // Unlike `events`, whose merges remove copies, this table contains a row per insert.
  await world.execute(
    'CREATE MATERIALIZED VIEW inserted_messages ENGINE = MergeTree ORDER BY message_id AS SELECT message_id FROM events',
  );
  await world.operate(THIS_RELEASE, 'identity', 'init');
  await world.operate(THIS_RELEASE, 'projects', 'create', '--name', world.project, '--id', world.project);
  const keys = {
    secret: await createKey(THIS_RELEASE, 'secret'),
    publishable: await createKey(THIS_RELEASE, 'publishable'),
  };
  await Promise.all(ORDER.map(async (service) => running.set(service, await world.start(THIS_RELEASE, service))));
  const { url } = running.get('gateway')!;
  const consent = `${url}/v1/audience/tracking-consent?anonymousId=any`;
  const headers = { 'x-service-publishable-key': keys.publishable };
  await until('the gateway accepts the key', async () => (await fetch(consent, { headers })).ok);
  load = openLoad(keys, url);
  await until('a round is acknowledged', () => load.rounds.length > 0);
  await settle();
});
afterAll(async () => {
  await load?.close().catch(() => {});
  await world?.close();
  next?.remove();
});

describe('an upgrade under load, to a release that changes every schema', () => {
  it('before: the `verify` command of this release passes', async () => {
    await verify(THIS_RELEASE);
  });

  it('step 1: the topics command of the next release registers its schemas and does not affect running processes', async () => {
    const schemas = Object.values(TOPICS).filter(({ schema }) => schema !== null).length;
    const expected = `topics: 0 created, 0 changed; schemas: ${schemas} registered\n`;
    expect(await world.deployTopics(next)).toContain(expected);
    await settle();
  });

  it('step 2: the tables command applies the migration and does not affect running processes', async () => {
    expect(await world.deployTables(next)).toMatch(/: applied migrations\/9999-added-later\.sql\n/);
    expect(await world.deployTables(next)).toMatch(/: up to date\n/);
    await settle();
  });

  it.each(ORDER)('step 3: the next release of %s replaces this release', async (service) => {
    await replace(service, next);
  });

  it('step 4: the erasures have receipts, and the `verify` command of the next release passes', async () => {
    await awaitReceipts();
    await verify(next);
  });

  it.each(ORDER.toReversed())('rollback: this release of %s replaces the next release', async (service) => {
    await replace(service, THIS_RELEASE);
  });

  it('rollback: every message that a gateway of the next release accepted is stored with its new field', async () => {
    const accepted = keptRounds().filter(({ gateway }) => nextGateways.has(gateway));
    const stored = await idsFrom(`SELECT toString(message_id) AS id FROM events WHERE added_later = '${ADDED.value}'`);
    const isCertain = (id: string) => !load.resent.has(id);
    const kept = new Set(idsOf(keptRounds()));
    expect(idsOf(accepted).length).toBeGreaterThan(0);
    expect(stored.filter((id) => kept.has(id) && isCertain(id)).toSorted()).toEqual(
      idsOf(accepted).filter(isCertain).toSorted(),
    );
  });

  it('rollback: the set-up commands of this release accept the tables and schemas of the next release', async () => {
    expect(await world.deployTables(THIS_RELEASE)).toMatch(/: up to date\n/);
    expect(await world.deployTopics(THIS_RELEASE)).toMatch(/^topics: 0 created, 0 changed;/);
    await settle();
  });

  it.each(ORDER.toReversed())(
    'in the opposite order: the next release of %s replaces this release',
    async (service) => {
      await replace(service, next);
    },
  );
});

describe('after the upgrade, the rollback and the second upgrade', () => {
  it('each acknowledged message is stored exactly once, and no valid request was refused', async () => {
    await load.close();
    await settle();
    const inserted = await idsFrom('SELECT toString(message_id) AS id FROM inserted_messages');
    const sent = new Set(idsOf(load.rounds));
    const counts = new Map<string, number>();
    for (const id of inserted) counts.set(id, (counts.get(id) ?? 0) + 1);
    expect({
      lost: [...sent].filter((id) => !counts.has(id)),
      doubled: [...counts].filter(([id, count]) => count > 1 && !load.resent.has(id)),
      unknown: [...counts.keys()].filter((id) => !sent.has(id)),
    }).toEqual({ lost: [], doubled: [], unknown: [] });
    expect(load.refusals).toEqual([]);
  });

  it('each erasure has a receipt, and only the rows of the erased persons are deleted', async () => {
    await awaitReceipts();
    const stored = await idsFrom('SELECT toString(message_id) AS id FROM events_exact');
    expect(stored.toSorted()).toEqual(idsOf(keptRounds()).toSorted());
  });

  it('each imported activity is stored exactly once', async () => {
    expect((await storedActivities()).toSorted()).toEqual(activities.toSorted());
  });

  it('each of the other persons has both messages and a consent', async () => {
    const people = keptRounds().length;
    const consents = 'SELECT toString(uniqExact(identity_key)) AS n FROM consent_log';
    const isComplete = async () => (await countPersons('true')) === people && (await countFrom(consents)) === people;
    await until(`${people} persons have two messages and a consent`, isComplete, WAIT_MS);
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

  it('every record on every topic contains the schema id of the release that wrote it, and none is a dead letter', async () => {
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
    expect(await readDeadReasons(world.prefix)).toEqual([]);
  });

  it('the `verify` command of both releases passes', async () => {
    await Promise.all([THIS_RELEASE, next].map(verify));
  });
});
