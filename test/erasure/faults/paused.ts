import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { expectErased, expectNoDataInRedis, expectNoRows, isHeld } from '../checks.ts';
import {
  alias,
  asPlayer,
  asVisitor,
  awaitStored,
  createPerson,
  identify,
  type Person,
  readRows,
  track,
} from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { awaitFences, createScene, fencedForSeconds, requestedForSeconds } from './scene.ts';

/** Longer than an undisturbed erasure takes to set fences. */
const UNFENCED_S = 6;

export async function pauseLinkerAndWriter(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { 'identity-linker': linker, 'event-writer': writer } = rig.running;
  const { person } = scene;
  const other = createPerson(rig);
  linker.signal('SIGSTOP');
  const toEvent = () => track({ userId: other.steamId, identityType: 'steam' });
  await rig.send([alias(person, { fromId: other.steamId }), toEvent()]);
  const erasureId = await rig.erase(asVisitor(person));
  await until(
    'the eraser has had enough time to set fences',
    async () => ((await requestedForSeconds(rig, erasureId)) ?? 0) > UNFENCED_S,
  );
  expect(await fencedForSeconds(rig, person.keys)).toBeNull();
  writer.signal('SIGSTOP');
  const decisions = async () => (await rig.log.read(rig.topic(TOPICS.identityDecisions.name))).length;
  const before = await decisions();
  linker.signal('SIGCONT');
  await until('the link is decided', async () => (await decisions()) > before);
  // The eraser waits for the decisions, which the paused writer has not stored.
  expect(await fencedForSeconds(rig, person.keys)).toBeNull();
  expect(await rig.receiptOf(erasureId)).toBeNull();
  writer.signal('SIGCONT');
  await awaitFences(rig, person.keys);
  await scene.expectErased(erasureId);
  // The link was accepted before the request, so the erasure includes the other account.
  const { cutoffAt } = await expectErased(rig, erasureId, [...person.keys, other.steamKey]);
  await expectNoRows(rig, other.keys, cutoffAt);
  expect((await readRows(rig, other)).events).toEqual([]);
  await expectNoDataInRedis(rig, other.keys);
}

export async function linkBeforeAndAfterRequest(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { person } = scene;
  const [before, between, after] = [createPerson(rig), createPerson(rig), createPerson(rig)];
  const toLink = (each: Person) => alias(person, { fromId: each.steamId });
  const toEvent = (each: Person) => track({ userId: each.steamId, identityType: 'steam' });
  await rig.send([toEvent(before), toEvent(between), toEvent(after), toLink(before)]);
  const erasureId = await rig.erase(asVisitor(person));
  await rig.send([toLink(between)]);
  await until('the cut-off has passed', async () => ((await requestedForSeconds(rig, erasureId)) ?? 0) > 2.1);
  const [laterLink, laterEvent] = [identify(after, { userId: person.userId }), track(asPlayer(person))];
  expect(await isHeld(rig, erasureId)).toBe(true);
  await rig.send([laterLink, laterEvent]);
  const { cutoffAt } = await expectErased(rig, erasureId, [...person.keys, before.steamKey]);
  await expectNoDataInRedis(rig, [person.anonymousKey, person.steamKey, before.steamKey]);
  const isErased = (await fencedForSeconds(rig, [between.steamKey])) !== null;
  if (isErased) await expectNoRows(rig, [between.steamKey], cutoffAt);
  else await expectNoRows(rig, [person.userKey], cutoffAt);
  await expectNoDataInRedis(rig, [between.steamKey]);
  await awaitStored(rig, [laterLink, laterEvent]);
  await scene.expectBystanderUnchanged();
}
