import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { expectErased, expectNoDataInRedis } from '../checks.ts';
import {
  alias,
  asPlayer,
  asVisitor,
  awaitStored,
  createPerson,
  identify,
  type Message,
  type Person,
  readRows,
  track,
} from '../people.ts';
import { ENVIRONMENT_ID, type ErasureRig } from '../rig.ts';

/** A person to erase and a bystander who must not lose any rows. */
export interface Scene {
  readonly person: Person;
  readonly bystander: Person;
  readonly kept: Readonly<Record<string, string[]>>;
  /** Waits for the erasure, then asserts that the person's data is gone and that no bystander rows are missing. */
  expectErased(erasureId: Buffer): Promise<void>;
  /** Asserts that the bystander's rows are unchanged and that their ids are still linked. */
  expectBystanderUnchanged(): Promise<void>;
}

/** Messages that a person sends as a visitor and as a player, including both links. */
export const messagesOf = (person: Person): Message[] => [
  track(asVisitor(person)),
  track(asPlayer(person)),
  identify(person),
  alias(person),
];

export async function createScene(rig: ErasureRig): Promise<Scene> {
  const [person, bystander] = [createPerson(rig), createPerson(rig)];
  const messages = [...messagesOf(person), ...messagesOf(bystander)];
  await rig.send(messages);
  for (const { anonymousId } of [person, bystander]) await consent(rig, anonymousId);
  await awaitStored(rig, messages);
  for (const each of [person, bystander])
    await until('the consent is stored', async () => (await readRows(rig, each)).consent_log?.length === 1);
  const kept = await readRows(rig, bystander);
  const expectBystanderUnchanged = async () => {
    const now = await readRows(rig, bystander);
    for (const [table, rows] of Object.entries(kept)) expect(now[table]).toEqual(expect.arrayContaining(rows));
    expect(await isLinked(rig, bystander)).toBe(true);
  };
  return {
    person,
    bystander,
    kept,
    expectBystanderUnchanged,
    async expectErased(erasureId) {
      await expectErased(rig, erasureId, person.keys);
      await expectNoDataInRedis(rig, person.keys);
      await expectBystanderUnchanged();
    },
  };
}

async function consent(rig: ErasureRig, anonymousId: string): Promise<void> {
  const body = JSON.stringify({ anonymousId, status: 'full', source: 'settings' });
  expect((await rig.request('tracking-consent', { method: 'PUT', body })).status).toBe(204);
}

export async function isLinked({ people }: ErasureRig, person: Person): Promise<boolean> {
  const members = await people.graph.membersOf(ENVIRONMENT_ID, person.anonymousKey);
  return [person.userKey, person.steamKey].every((key) => members.some((member) => member.key.equals(key)));
}

const listOf = (keys: readonly Buffer[]) => keys.map((key) => `unhex('${key.toString('hex')}')`).join(', ');

/** Seconds since the identities' fences were written (ClickHouse's clock), or null if there are no fences yet. */
export async function fencedForSeconds(rig: ErasureRig, keys: readonly Buffer[]): Promise<number | null> {
  const [row] = await rig.query(
    `SELECT count(), dateDiff('millisecond', min(fenced_at), now64(3)) / 1000 FROM erasure_fences
     WHERE identity_key IN (${listOf(keys)})`,
  );
  return row?.[0] === '0' ? null : Number(row?.[1]);
}

// Seconds since an erasure was requested (ClickHouse's clock), or null if the eraser has not stored the request yet.
export async function requestedForSeconds(rig: ErasureRig, erasureId: Buffer): Promise<number | null> {
  const [row] = await rig.query(
    `SELECT count(), dateDiff('millisecond', min(requested_at), now64(3)) / 1000 FROM erasure_requests
     WHERE replaceAll(toString(erasure_id), '-', '') = '${erasureId.toString('hex')}'`,
  );
  return row?.[0] === '0' ? null : Number(row?.[1]);
}

export const awaitFences = (rig: ErasureRig, keys: readonly Buffer[]): Promise<unknown> =>
  until('the fences are stored', async () => (await fencedForSeconds(rig, keys)) !== null);

export async function awaitCaughtUp(rig: ErasureRig, name: string, group: string): Promise<void> {
  const topic = rig.topic(name);
  await until(`${group} has read all of ${name}`, async () => {
    const committed = await rig.log.reader.committed(group, topic);
    const records = await rig.log.read(topic);
    return records.every(({ partition, offset }) => (committed.get(partition) ?? 0) > offset);
  });
}

// Statements that identify the steps of an erasure, in order. The first line of an HTTP request contains the statement.
// A restarted eraser starts at the fences.
export const STATEMENTS = {
  'resolved, progress not stored': /INSERT INTO erasure_progress/,
  'progress stored, not fenced': /INSERT INTO erasure_fences/,
  'forgotten in Redis': /INSERT INTO erasure_progress/,
  'ready to sweep': /INSERT INTO erasure_targets/,
  'swept, without a receipt': /INSERT INTO erasure_receipts/,
} as const;
