import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { createOperate } from '../../../services/operator/src/test/operate.ts';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import { expectNoHold, expectNoRows } from '../checks.ts';
import { asPlayer, asVisitor, awaitStored, identify, readRows, track } from '../people.ts';
import { awaitReceipt, type ErasureRig } from '../rig.ts';
import { keyNeedles, locationsIn } from '../traces/needle.ts';
import { findInRedis } from '../traces/redis.ts';
import { awaitCaughtUp, awaitFences, createScene, isLinked, messagesOf } from './scene.ts';

const HOUR_MS = 3_600_000;
const CONSUMED: [keyof ErasureRig['running'], string[]][] = [
  ['event-writer', [TOPICS.messages, TOPICS.identityDecisions, TOPICS.consents].map(({ name }) => name)],
  ['identity-linker', [TOPICS.identityLinks.name]],
];

/** Tests all cases with one erasure because an erasure takes half a minute. */
export async function loseAndReread(rig: ErasureRig): Promise<void> {
  const { person, bystander, ...scene } = await createScene(rig);
  const erasureId = await rig.erase(asVisitor(person));
  await awaitFences(rig, person.keys);
  await rig.redis.flushall();
  await rebuild(rig);
  await scene.expectErased(erasureId);
  await rig.redis.flushall();
  await rebuild(rig);
  // Without the fence, the next old batch would restore the person's data.
  const fences = await findInRedis(rig.redis, keyNeedles('the player', person.userKey));
  expect(locationsIn(fences)).toEqual(['redis f:{env}:<bucket>']);
  const { cutoffAt } = await awaitReceipt(rig, erasureId);
  await rereadLog(rig);
  const text = await metricsOf(rig.running['event-writer']);
  expect(sumOf(text, 'playline_stream_records_total', 'reason="fenced"')).toBeGreaterThan(0);
  await expectNoRows(rig, person.keys, cutoffAt);
  await scene.expectErased(erasureId);
  const messages = messagesOf(bystander);
  await until('the gateway accepts the restored keys', () => rig.send(messages).then(() => true));
  await awaitStored(rig, messages);
  const later = messagesOf(person);
  await rig.send(later);
  await awaitStored(rig, later);
  await until('the person is linked again', () => isLinked(rig, person));
  const kept = await readRows(rig, person);
  const dropped = async () =>
    sumOf(await metricsOf(rig.running['event-writer']), 'playline_stream_records_total', 'reason="fenced"');
  const deadLetters = async () => (await rig.log.read(rig.topic(`${TOPICS.messages.name}.dead`))).length;
  const [before, deadBefore] = [await dropped(), await deadLetters()];
  const eventTimestamp = new Date(cutoffAt - HOUR_MS).toISOString();
  const old = [track(asVisitor(person)), track(asPlayer(person)), identify(person)];
  await rig.send(old.map((message) => ({ ...message, eventTimestamp })));
  await until('the old batch is dropped', async () => (await dropped()) >= before + old.length);
  await awaitCaughtUp(rig, TOPICS.identityLinks.name, rig.world.groupOf('identity-linker'));
  await awaitCaughtUp(rig, TOPICS.identityDecisions.name, rig.world.groupOf('event-writer'));
  expect(await deadLetters()).toBe(deadBefore);
  await expectNoRows(rig, person.keys, cutoffAt);
  expect(await readRows(rig, person)).toEqual(kept);
  expect(await isLinked(rig, person)).toBe(true);
  await expectNoHold(rig, erasureId);
  await scene.expectBystanderUnchanged();
}

/** Stops the services, resets their committed offsets to 0 and restarts them to reread the log. */
async function rereadLog(rig: ErasureRig): Promise<void> {
  for (const [service] of CONSUMED) await rig.running[service].close();
  const { file } = rig.world.stack;
  const environment = { KAFKA_BROKERS: file.kafka.join(','), SCHEMA_REGISTRY_URL: file.registry };
  const operate = createOperate(environment, rig.topic(''));
  for (const [service, topics] of CONSUMED)
    for (const name of topics) {
      const [group, topic] = [rig.world.groupOf(service), rig.topic(name)];
      for (const partition of (await rig.log.reader.committed(group, topic)).keys()) {
        const at = ['--group', group, '--topic', topic, '--partition', String(partition)];
        const { code, lines } = await operate('offsets', 'accept', ...at, '--from', '0', '--yes');
        expect([code, lines]).toEqual([0, expect.anything()]);
      }
    }
  for (const [service] of CONSUMED) rig.running[service] = await rig.start(service);
  for (const [service, topics] of CONSUMED)
    for (const topic of topics) await awaitCaughtUp(rig, topic, rig.world.groupOf(service));
}

async function rebuild(rig: ErasureRig): Promise<void> {
  const groups = [
    '--linker-group',
    rig.world.groupOf('identity-linker'),
    '--writer-group',
    rig.world.groupOf('event-writer'),
  ];
  await rig.operateOrThrow('rebuild', ...groups);
}
