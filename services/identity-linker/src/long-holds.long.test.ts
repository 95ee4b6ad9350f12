import { createIdentityKeyer } from '@playline/people';
import { openWire, testStores, until, type Wire } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type LinkerProcess, startProcess } from './test/linker-process.ts';
import { toFact } from './test/linking.ts';
import { openRealStores, type RealStores } from './test/open-real-stores.ts';

// The partitions of a killed linker are reassigned only when its session has ended.
const WAIT_MS = 40_000;
/** Header of facts that have gone round for a minute: they go to the parked place in their next round. */
const LONG_ROUNDS = { rounds: '17' };
const FACTS = 20;

let stores: RealStores;
let wire: Wire;
let environmentId: string;
let holdName: { environmentId: string; erasureId: Buffer };
const linkers: LinkerProcess[] = [];

beforeAll(async () => {
  stores = await openRealStores();
  wire = await openWire(Number(new URL(testStores().redis).port));
});
afterAll(async () => {
  await wire.close();
  await stores.close();
});
beforeEach(async () => {
  environmentId = stores.createEnvironmentId();
  wire.mode = 'open';
  const key = createIdentityKeyer(Buffer.alloc(32, 5))(environmentId, 'untyped', 'u');
  holdName = { environmentId, erasureId: key };
  await stores.people.guards.putHold({ ...holdName, keys: [key], cutoffMs: 999, lapsesAtMs: null });
});
afterEach(async () => {
  await stores.people.guards.releaseHold(holdName);
  await Promise.all(linkers.splice(0).map((linker) => linker.stop('SIGKILL')));
});

/** A linker that talks to Redis over the wire. */
async function open(): Promise<LinkerProcess> {
  const url = new URL(testStores().redis);
  url.port = String(wire.port);
  const linker = await startProcess(stores, { REDIS_URL: url.href });
  linkers.push(linker);
  return linker;
}

const kill = () => linkers.pop()!.stop('SIGKILL');
const ofEnvironment = async (of: 'links' | 'parked') =>
  (await stores.readFacts(of)).filter(({ key }) => String(key) === environmentId);
/** Facts of the parked place, each once. */
const parked = async () => new Set((await ofEnvironment('parked')).map(({ value }) => value!.toString('hex'))).size;
const isCommitted = async (of: 'links' | 'parked') =>
  (await stores.countCommitted(of)) === (await stores.readFacts(of)).length;

/** Devices in the order in which their first links were decided. */
async function decided(): Promise<number[]> {
  const own = (await stores.readDecisions()).filter((one) => one.environmentId === environmentId);
  return [...new Set(own.map(({ messageId }) => messageId[0]!))];
}

async function publish(): Promise<void> {
  const devices = Array.from({ length: FACTS }, (_, at) => at + 1);
  const facts = devices.map((at) => toFact({ environmentId, fromId: `d${at}`, messageId: Buffer.alloc(16, at) }));
  await stores.publish(facts, LONG_ROUNDS);
}

/** Breaks the connection after the next question about holds, so that its answer is lost. */
async function breakLook(): Promise<void> {
  wire.muteAt(environmentId);
  await until('a look', () => wire.mode === 'mute', WAIT_MS);
}

async function waiting({ adminUrl }: LinkerProcess): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^playline_identity_waiting_facts\{.*\} (\d+)$/m.exec(text)?.[1]);
}

describe('links of a person whom an erasure holds for long, on real stores', () => {
  it('wait in the parked place without writes, also while Redis is away, and are decided when they are released', async () => {
    const linker = await open();
    await publish();
    await until('all are there', async () => (await parked()) === FACTS, WAIT_MS);
    await until('links are committed', () => isCommitted('links'), WAIT_MS);
    await until('all are waited for', async () => (await waiting(linker)) === FACTS, WAIT_MS);
    const written = async () => [(await ofEnvironment('links')).length, (await ofEnvironment('parked')).length];
    const before = await written();
    for (let look = 0; look < 3; look++) {
      await breakLook();
      wire.mode = 'open';
    }
    await until('it is ready again', async () => (await fetch(`${linker.adminUrl}/readyz`)).ok, WAIT_MS);
    expect([await written(), await decided()]).toEqual([before, []]);
    await stores.people.guards.releaseHold(holdName);
    await until('all are decided', async () => (await decided()).length === FACTS, WAIT_MS);
    expect(await decided()).toEqual(Array.from({ length: FACTS }, (_, at) => at + 1));
    await until('what was parked is committed', () => isCommitted('parked'), WAIT_MS);
    expect(await waiting(linker)).toBe(0);
  });

  it('are all decided in order although the linker is killed while they move there, wait, are checked and come back', async () => {
    await open();
    await publish();
    await until('some are there', async () => (await parked()) > 0, WAIT_MS);
    await kill();
    const second = await open();
    await until('all are there', async () => (await parked()) === FACTS, WAIT_MS);
    await until('all are waited for', async () => (await waiting(second)) === FACTS, WAIT_MS);
    await until('links are committed', () => isCommitted('links'), WAIT_MS);
    await breakLook();
    await kill();
    wire.mode = 'open';
    await open();
    const links = (await ofEnvironment('links')).length;
    await stores.people.guards.releaseHold(holdName);
    await until('some come back', async () => (await ofEnvironment('links')).length > links, WAIT_MS);
    await kill();
    await open();
    await until('all are decided', async () => (await decided()).length === FACTS, WAIT_MS);
    expect(await decided()).toEqual(Array.from({ length: FACTS }, (_, at) => at + 1));
    await until('all links are committed', () => isCommitted('links'), WAIT_MS);
    await until('what was parked is committed', () => isCommitted('parked'), WAIT_MS);
  });
});
