import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
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

const stack = openTestStack();
const [stayed, erased, later] = [createPlayer(200), createPlayer(200), createPlayer(20)];
/** A second device of the erased player, linked after the backup. */
const secondDevice = createPlayer(3);
const linkedLater = secondDevice.messages.map((message) =>
  message.type === 'identify' ? { ...message, userId: erased.userId } : message,
);
let [before, first]: [Record<string, string>, string] = [{}, ''];

const backUp = async () =>
  JSON.parse(await stack.operate(['backup', '--to', stack.backups, '--json'])).folder as string;

beforeAll(async () => {
  await stack.startAll();
  await stack.post([...stayed.messages, ...erased.messages]);
  await awaitStored(stack, [...stayed.ids, ...erased.ids]);
  await until(
    'both links are stored',
    async () => Number((await stack.query('SELECT count() FROM identity_links'))[0]?.[0]) >= 2,
  );
  before = await digestTables(stack, QUIET_TABLES);
  first = await backUp();
  await stack.post([...later.messages, ...linkedLater]);
  await awaitStored(stack, [...later.ids, ...secondDevice.ids]);
  await awaitErased(stack, await stack.erase(erased.userId));
}, STACK_MS);
afterAll(() => stack.close(), STACK_MS);

it('a backup contains no secret and no password', () => {
  const secrets = JSON.parse(readFileSync(join(stack.backups, '..', '.playline', 'secrets.json'), 'utf8'));
  const texts = readdirSync(first).map((name) => readFileSync(join(first, name), 'latin1'));
  const values = Object.values(secrets).filter((value) => typeof value === 'string');
  expect(values.length).toBeGreaterThan(10);
  for (const value of values) expect(texts.some((text) => text.includes(value))).toBe(false);
});

it(
  'with the log, a restore that is killed and repeated returns every later message and no row of a person erased since the backup',
  async () => {
    await stack.stop();
    stack.lose('clickhouse');
    await stack.startStores();
    await stack.createTables();

    const killed = stack.run(['restore', '--from', first, '--yes']);
    await awaitOutput(killed, 'files loaded');
    killed.child.kill('SIGKILL');
    await killed.exit;
    await expect(stack.queryAsAnalyst('SELECT count() FROM analysis_events_raw')).rejects.toThrow('Reads are refused');

    const repeated = stack.run(['restore', '--from', first, '--yes']);
    await awaitOutput(repeated, 'waiting for the eraser');
    expect(await digestTables(stack, QUIET_TABLES)).toEqual(before);
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

it('a backup shares the files of unchanged table partitions with the previous one', async () => {
  const [second, third] = [await backUp(), await backUp()];
  const inodeOf = (folder: string) => {
    const name = readdirSync(folder).find((each) => each.startsWith('events.'))!;
    return statSync(join(folder, name)).ino;
  };
  expect(inodeOf(third)).toBe(inodeOf(second));
  expect(inodeOf(second)).not.toBe(inodeOf(first));
});

it(
  'without the log, an old backup beside a newer one restores keys, links and messages, but no one whom the newer one knows to be erased',
  async () => {
    await stack.stop();
    stack.lose('kafka', 'registry', 'redis', 'clickhouse');
    await stack.startStores();
    await stack.createTopics();
    await stack.createTables();
    const generation = { LINK_TOPIC_GENERATION: '1' };
    await expect(stack.operate(['restore', '--from', first, '--yes'])).rejects.toThrow(
      'set LINK_TOPIC_GENERATION to 1',
    );
    expect(await stack.operate(['restore', '--from', first, '--yes'], generation)).toContain('the log was new');
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
