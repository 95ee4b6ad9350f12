import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { lineOf } from '../import/test/lines.ts';
import type { Manifest } from './manifest.ts';
import { openS3Server } from './test/s3-server.ts';
import {
  awaitErased,
  awaitStored,
  type Command,
  createPlayer,
  digestTables,
  openTestStack,
  storedOf,
} from './test/stack.ts';

const STACK_MS = 600_000;
/** Tables whose rows no service changes while no messages arrive. */
const QUIET_TABLES = ['events', 'identity_links', 'identity_overrides', 'consent_log', 'audit_log', 'erasure_fences'];

/** Activities before the first backup, and how many of these are read again after it is restored. */
const [ACTIVITIES, READ_AGAIN] = [6, 2];

let s3: Awaited<ReturnType<typeof openS3Server>>;
const stack = openTestStack(() => s3.environment);
const [stayed, erased, later] = [createPlayer(200), createPlayer(200), createPlayer(20)];
/** A second device of the erased player, linked after the backup. */
const secondDevice = createPlayer(3);
const linkedLater = secondDevice.messages.map((message) =>
  message.type === 'identify' ? { ...message, userId: erased.userId } : message,
);
let [before, first, firstInS3]: [Record<string, string>, string, string] = [{}, '', ''];

const backUp = async (to = stack.backups): Promise<string> =>
  JSON.parse(await stack.operate(['backup', '--to', to, '--json'])).location;
const backUpToS3 = () => backUp(`${s3.location}/playline`);
const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));

beforeAll(async () => {
  s3 = await openS3Server();
  await stack.startAll();
  await stack.post([...stayed.messages, ...erased.messages]);
  await awaitStored(stack, [...stayed.ids, ...erased.ids]);
  await until(
    'both links are stored',
    async () => Number((await stack.query('SELECT count() FROM identity_links'))[0]?.[0]) >= 2,
  );
  await stack.operate(['columns', 'add', '--name', 'level', '--path', 'level', '--type', 'Int64']);
  const lines = Array.from({ length: ACTIVITIES }, (_, number) => `${JSON.stringify(lineOf(number))}\n`);
  await stack.operate([
    'import',
    '--topic',
    'chain.activities.v1',
    stack.writeFile('activities.ndjson', lines.join('')),
  ]);
  await awaitActivities();
  before = await digestTables(stack, QUIET_TABLES);
  first = await backUp();
  firstInS3 = await backUpToS3();
  await stack.post([...later.messages, ...linkedLater]);
  await awaitStored(stack, [...later.ids, ...secondDevice.ids]);
  await awaitErased(stack, await stack.erase(erased.userId));
}, STACK_MS);
afterAll(async () => {
  await stack.close();
  await s3?.close();
}, STACK_MS);

const countActivities = async () => {
  const [stored] = await stack.query('SELECT count(), uniqExact(id) FROM activities');
  const [shown] = await stack.query(`SELECT count(), uniqExact(id) FROM activity_feeds
    WHERE entry = 'version' AND feed = 'demo-chain * *'`);
  return [...(stored ?? []), ...(shown ?? [])].map(Number);
};
const awaitActivities = () =>
  until('the activities are stored', async () => (await countActivities()).every((count) => count >= ACTIVITIES));
const countLevels = async () => Number((await stack.query('SELECT countIf(property_level = 7) FROM events'))[0]?.[0]);

/** Changes a backup as if its commits had been read before its last activities were stored. */
async function rewindActivities(folder: string): Promise<void> {
  const [row] = await stack.query(`SELECT toUInt32(kafka_partition), toUInt32(kafka_offset) FROM activities
    ORDER BY kafka_offset LIMIT 1 OFFSET ${ACTIVITIES - READ_AGAIN}`);
  const manifest = readManifest(folder);
  const rewound = manifest.commits.map((commit) => {
    const { group, topic, partition } = commit;
    const isRewound = group === 'activity-writer' && topic === 'chain.activities.v1' && partition === row?.[0];
    return isRewound ? { ...commit, committed: Number(row?.[1]), last: null } : commit;
  });
  expect(rewound).not.toEqual(manifest.commits);
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, commits: rewound }));
}

it('a backup contains the settings of topics, but no secret and no password', () => {
  const texts = readdirSync(first).map((name) => readFileSync(join(first, name), 'latin1'));
  const values = stack.readSecrets();
  const { settings } = readManifest(first).topicSettings.find(({ topic }) => topic === 'audience.messages.v1')!;
  expect(settings).toMatchObject({ 'retention.ms': '259200000', 'max.message.bytes': '2097152' });
  expect(values.length).toBeGreaterThan(10);
  for (const value of values) expect(texts.some((text) => text.includes(value))).toBe(false);
});

it(
  'with the log, a restore that is killed and repeated returns every later message, each activity once, property columns, and no row of a person erased since the backup',
  async () => {
    const levels = await countLevels();
    await rewindActivities(first);
    await stack.stop();
    stack.lose('clickhouse');
    await stack.startStores();

    const killed = stack.run(['restore', '--from', first, '--yes']);
    await awaitOutput(killed, 'files loaded');
    killed.child.kill('SIGKILL');
    await killed.exit;
    await expect(stack.queryAsAnalyst('SELECT count() FROM analysis_events_raw')).rejects.toThrow('Reads are refused');

    const repeated = stack.run(['restore', '--from', first, '--yes']);
    await awaitOutput(repeated, 'waiting for the eraser');
    expect(await digestTables(stack, QUIET_TABLES)).toEqual(before);
    expect(await countActivities()).toEqual(Array(4).fill(ACTIVITIES - READ_AGAIN));
    repeated.child.kill('SIGINT');
    expect(await repeated.exit).toBe(1);

    await stack.stop();
    await stack.startAll();
    await expect(stack.queryAsAnalyst('SELECT count() FROM analysis_events_raw')).rejects.toThrow('Reads are refused');
    const finished = stack.run(['restore', '--from', first]);
    const seen = await readUntilExit(finished.exit, [...erased.ids, ...secondDevice.ids]);
    expect(await finished.exit, finished.output()).toBe(0);
    expect(seen).toBe(0);
    await awaitStored(stack, later.ids);
    expect(await storedOf(stack, [...erased.ids, ...secondDevice.ids])).toEqual([]);
    expect(await storedOf(stack, stayed.ids)).toEqual([...stayed.ids].sort());
    await awaitActivities();
    expect(await countActivities()).toEqual(Array(4).fill(ACTIVITIES));
    expect(await countLevels()).toBe(levels);
    expect(await stack.operate(['verify'])).toContain('no differences');
  },
  STACK_MS,
);

const awaitOutput = ({ child, output }: Command, text: string) =>
  until(`the command prints ${text}`, async () => {
    if (child.exitCode !== null) throw new Error(output());
    return output().includes(text);
  });

/** Reads as an analyst until the command exits. @returns the number of rows of the given messages that were readable */
async function readUntilExit(exit: Promise<unknown>, ids: readonly string[]): Promise<number> {
  const list = ids.map((id) => `'${id}'`).join();
  let [hasExited, seen] = [false, 0];
  void exit.then(() => {
    hasExited = true;
  });
  while (!hasExited) {
    const rows = await stack
      .queryAsAnalyst(`SELECT count() FROM analysis_events_raw WHERE message_id IN (${list})`)
      .catch(() => []);
    seen += Number(rows[0]?.[0] ?? 0);
  }
  return seen;
}

it(
  'a backup shares the files of unchanged table partitions with the previous one, and does not upload them again',
  async () => {
    const [second, third] = [await backUp(), await backUp()];
    const inodeOf = (folder: string) => {
      const name = readdirSync(folder).find((each) => each.startsWith('events.'))!;
      return statSync(join(folder, name)).ino;
    };
    expect(inodeOf(third)).toBe(inodeOf(second));
    expect(inodeOf(second)).not.toBe(inodeOf(first));
    const countUploads = async () => {
      const id = (await backUpToS3()).split('/').at(-1);
      return (await s3.listKeys(`playline/files/${id}/events.`)).length;
    };
    expect(await countUploads()).toBeGreaterThan(0);
    expect(await countUploads()).toBe(0);
  },
  STACK_MS,
);

it(
  'a backup that is killed while it uploads is not offered',
  async () => {
    const location = `${s3.location}/killed`;
    const killed = stack.run(['backup', '--to', location]);
    await awaitOutput(killed, 'copying partition');
    killed.child.kill('SIGKILL');
    await killed.exit;
    await expect(stack.operate(['restore', '--from', location])).rejects.toThrow('contains no finished backup');
  },
  STACK_MS,
);

it(
  'without the log, an old backup in S3 beside a newer one restores keys, links and messages, but no one whom the newer one knows to be erased',
  async () => {
    await stack.stop();
    stack.lose('kafka', 'registry', 'redis', 'clickhouse');
    await stack.startStores();
    const generation = { LINK_TOPIC_GENERATION: '1' };
    await expect(stack.operate(['restore', '--from', firstInS3, '--yes'])).rejects.toThrow(
      'set LINK_TOPIC_GENERATION to 1',
    );
    expect(await stack.operate(['restore', '--from', firstInS3, '--yes'], generation)).toContain('the log was new');
    expect(await storedOf(stack, [...stayed.ids, ...erased.ids])).toEqual([...stayed.ids].sort());

    await stack.stop();
    await stack.startAll(generation);
    const added = createPlayer(5);
    await stack.post(
      added.messages.map((message) => (message.type === 'identify' ? { ...message, userId: stayed.userId } : message)),
    );
    await awaitStored(stack, added.ids);
    await until('the new decision applies to the restored person', async () => {
      const rows = await stack.query(`SELECT uniqExact(person_key) FROM events_identified
        WHERE message_id IN (${[...stayed.ids, ...added.ids].map((id) => `'${id}'`).join()})`);
      return Number(rows[0]?.[0]) === 1;
    });
    expect(await stack.operate(['verify'], generation)).toContain('no differences');
  },
  STACK_MS,
);

it('no command prints a secret', () => {
  const output = stack.output();
  expect(output).toContain('the log was new');
  for (const secret of [...stack.readSecrets(), s3.environment.AWS_SECRET_ACCESS_KEY])
    expect(output.includes(secret)).toBe(false);
});
