import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { until } from '@playline/testkit';
import { createRandom, type Random } from '@playline/testkit/random';
import type { Reached } from './world/reached.ts';
import { assertVerified, WAIT_MAX_MS } from './writer-exact.ts';
import { listen } from './writer-kafka-gate.ts';
import { type GatedProcess, startGatedProcess } from './writer-process.ts';
import type { WriterRig } from './writer-rig.ts';

/** A transaction replays a hundred dead letters. All kills together leave some over. */
const DEAD_LETTERS = 1_000;
const KILLS = 3;

/**
 * Makes every message a dead letter, because the registry has lost its schemas. Then replays them with a command that
 * is killed repeatedly at the end of a transaction. Each message is stored once.
 */
export async function replayDeadLetters(rig: WriterRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  const environmentId = `test-replay-${seed}`;
  await makeDeadLetters(rig, environmentId);
  const writer = await rig.startWriter();
  try {
    for (let kill = 0; kill < KILLS; kill++) await killReplay(rig, random);
    const { code, lines } = await rig.operate('dead-letters', 'replay', '--all');
    assert.equal(code, 0, lines.join('\n'));
    const count = (what: string) => rig.query(`SELECT ${what} FROM events WHERE environment_id = '${environmentId}'`);
    const all = async () => Number(await count('uniqExact(message_id)')) >= DEAD_LETTERS;
    await until('every message', all, WAIT_MAX_MS);
    assert.equal(await openDeadLetters(rig), 0, 'open dead letters');
    await until('the writer counts none', async () => (await countedDeadLetters(rig, writer)) === 0, WAIT_MAX_MS);
    assert.equal(Number(await count('count()')), DEAD_LETTERS);
    await assertVerified(rig);
    await writer.stop();
    return { 'dead letters replayed': DEAD_LETTERS, 'kills at the end of a transaction': KILLS };
  } finally {
    await writer.close();
  }
}

async function makeDeadLetters(rig: WriterRig, environmentId: string): Promise<void> {
  const registry = createServer((_request, response) => response.writeHead(404).end('{"error_code":40403}'));
  const writer = await rig.startWriter({ SCHEMA_REGISTRY_URL: `http://127.0.0.1:${await listen(registry)}` });
  try {
    await rig.publishMessages(environmentId, DEAD_LETTERS);
    await rig.caughtUp();
    await until(
      'the writer counts them',
      async () => (await countedDeadLetters(rig, writer)) === DEAD_LETTERS,
      WAIT_MAX_MS,
    );
    await writer.stop();
  } finally {
    await writer.close();
    registry.close();
  }
  assert.equal(await openDeadLetters(rig), DEAD_LETTERS, 'dead letters');
}

/** Kills a replay at the end of one of its transactions. What it had sent may still arrive later, or not at all. */
async function killReplay(rig: WriterRig, random: Random): Promise<void> {
  const { stores, environment } = rig;
  const [file, args] = ['services/operator/src/main.ts', ['dead-letters', 'replay', '--all']];
  const target = { brokers: stores.kafka, clickhouse: stores.clickhouse.url, environment };
  const command = await startGatedProcess({ file, args, ...target });
  try {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let passages = random.integer(0, 2);
    const hold = async () => {
      if (passages-- > 0) return;
      reached.resolve();
      await released.promise;
    };
    const arrivesLate = random.chance(0.5);
    command.kafka.watch = { of: 'transactions', ...(random.chance(0.5) ? { arrived: hold } : { answered: hold }) };
    const ended = until('the command has ended', () => command.gone, WAIT_MAX_MS).then(() => false);
    const isReached = await Promise.race([reached.promise.then(() => true), ended]);
    assert.ok(isReached, 'the replay has ended before the transaction at whose end it was to be killed');
    await command.kill();
    if (!arrivesLate) await command.kafka.close();
    released.resolve();
    await command.kafka.settled();
  } finally {
    await command.close();
  }
}

/** The number of dead letters in the writer's metrics. Undefined before the first update, every ten seconds. */
async function countedDeadLetters(rig: WriterRig, writer: GatedProcess): Promise<number | undefined> {
  const start = `playline_stream_open_dead_letters{topic="${rig.messages}"`;
  const line = (await writer.metrics()).split('\n').find((each) => each.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')));
}

async function openDeadLetters(rig: WriterRig): Promise<number> {
  const { lines } = await rig.operate('dead-letters', 'list', '--json');
  const groups = JSON.parse(lines[0] ?? '[]') as { open: number }[];
  return groups.reduce((sum, { open }) => sum + open, 0);
}
