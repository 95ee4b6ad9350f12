import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { expectErased, expectNothing, expectNothingInRedis, isHeld } from '../checks.ts';
import {
  alias,
  asPlayer,
  asVisitor,
  createPerson,
  identify,
  type Person,
  rowsAbout,
  stored,
  track,
} from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { createScene, fenced, fencedForSeconds, requestedForSeconds } from './scene.ts';

/** Longer than an undisturbed erasure takes until it sets fences. */
const UNFENCED_S = 6;

export async function eraserWaitsForPausedServices(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { 'identity-linker': linker, 'event-writer': writer } = rig.running;
  const { person } = scene;
  const other = createPerson(rig);
  linker.signal('SIGSTOP');
  const playing = () => track({ userId: other.steamId, identityType: 'steam' });
  await rig.send([alias(person, { fromId: other.steamId }), playing()]);
  const erasureId = await rig.erase(asVisitor(person));
  await until(
    'the eraser has had time to continue',
    async () => ((await requestedForSeconds(rig, erasureId)) ?? 0) > UNFENCED_S,
  );
  expect(await fencedForSeconds(rig, person.keys)).toBeNull();
  writer.signal('SIGSTOP');
  const decisions = async () => (await rig.log.read(rig.topic(TOPICS.identityDecisions.name))).length;
  const before = await decisions();
  linker.signal('SIGCONT');
  await until('the link is decided', async () => (await decisions()) > before);
  // The eraser needs the stored decisions, and only the writer can store them.
  expect(await fencedForSeconds(rig, person.keys)).toBeNull();
  expect(await rig.receiptOf(erasureId)).toBeNull();
  writer.signal('SIGCONT');
  await fenced(rig, person.keys);
  await scene.ends(erasureId);
  // The link was accepted before the request, so the other account belongs to the person.
  const { cutoffAt } = await expectErased(rig, erasureId, [...person.keys, other.steamKey]);
  await expectNothing(rig, other.keys, cutoffAt);
  expect((await rowsAbout(rig, other)).events).toEqual([]);
  await expectNothingInRedis(rig, other.keys);
}

export async function linksAroundTheRequest(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { person } = scene;
  const [before, between, after] = [createPerson(rig), createPerson(rig), createPerson(rig)];
  const joins = (each: Person) => alias(person, { fromId: each.steamId });
  const playing = (each: Person) => track({ userId: each.steamId, identityType: 'steam' });
  await rig.send([playing(before), playing(between), playing(after), joins(before)]);
  const erasureId = await rig.erase(asVisitor(person));
  await rig.send([joins(between)]);
  await until('the cut-off has passed', async () => ((await requestedForSeconds(rig, erasureId)) ?? 0) > 2.1);
  const [laterLink, laterEvent] = [identify(after, { userId: person.userId }), track(asPlayer(person))];
  expect(await isHeld(rig, erasureId)).toBe(true);
  await rig.send([laterLink, laterEvent]);
  const { cutoffAt } = await expectErased(rig, erasureId, [...person.keys, before.steamKey]);
  await expectNothingInRedis(rig, [person.anonymousKey, person.steamKey, before.steamKey]);
  const isErased = (await fencedForSeconds(rig, [between.steamKey])) !== null;
  if (isErased) await expectNothing(rig, [between.steamKey], cutoffAt);
  else await expectNothing(rig, [person.userKey], cutoffAt);
  await expectNothingInRedis(rig, [between.steamKey]);
  await stored(rig, [laterLink, laterEvent]);
  await scene.expectBystanderUnchanged();
}
