import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  frameRecord,
  type MintStateRecord,
  type MintTransactionRecord,
  mintStateCodec,
  TOPICS,
  toMintStateKey,
  toSignerKey,
} from '@playline/contracts';
import { type AtomicPublisher, type LogReader, toPartition } from '@playline/stream';
import { createSchemaRegistry, openAtomicPublisher, openLogReader } from '@playline/stream/kafka';
import { type OwnStores, openOwnStores, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toFirstState } from '../lane/lane-context.ts';
import { MintLane } from '../lane/mint-lane.ts';
import { createNodeChoice } from '../pipeline.ts';
import type { ChainRules, LaneSigner, LaneWriter, MintLog, SignerLane } from '../ports.ts';
import { CHAIN, SIGNERS, toRequest } from '../test/mint-requests.ts';
import { createMintLog } from './kafka-mint-log.ts';

const [ONE, OTHER] = SIGNERS.map((signer): SignerLane => ({ chain: CHAIN, signer })) as [SignerLane, SignerLane];
const EMPTY_CHANGE = { states: [], transactions: [], forgotten: [] };

let stores: OwnStores;
let reader: LogReader;
let requested = 0;
const opened: (AtomicPublisher | LaneWriter)[] = [];

beforeAll(async () => {
  // One partition, so that one signer's open transaction can precede the other signer's records.
  stores = await openOwnStores({ partitions: 1 });
  const real = openLogReader({ brokers: testStores().kafka, clientId: 'test' });
  const bounds: LogReader['bounds'] = (...request) => {
    requested++;
    return real.bounds(...request);
  };
  const { committed, read, close } = {
    committed: real.committed.bind(real),
    read: real.read.bind(real),
    close: real.close.bind(real),
  };
  reader = { bounds, committed, read, close };
});
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close().catch(() => {})));
  await reader.close();
  await stores.close();
});

function createLog(beforeCommit?: () => Promise<void>): MintLog {
  const { kafka: brokers, registry } = testStores();
  const { schemaOf } = createSchemaRegistry({ url: registry });
  const topicOf = ({ name }: { name: string }) => ({
    name: stores.prefix + name,
    schemaId: async () => stores.schemaIdOf(stores.prefix + name),
  });
  return createMintLog({
    tracing: null,
    reader,
    schemaOf,
    states: topicOf(TOPICS.mintStates),
    transactions: topicOf(TOPICS.mintTransactions),
    openPublisher: async (name) => {
      const publisher = await openAtomicPublisher({ brokers, name: stores.prefix + name, beforeCommit });
      opened.push(publisher);
      return publisher;
    },
  });
}

const stateOf = (lane: SignerLane, referenceId: string) =>
  toFirstState({ request: toRequest(referenceId, { signer: lane.signer }), partition: 0, offset: 0 }, 1);
async function statesOf(writer: LaneWriter): Promise<MintStateRecord[]> {
  const states: MintStateRecord[] = [];
  for await (const state of writer.readStates()) states.push(state);
  return states;
}

const namesOf = async (writer: LaneWriter) => [
  ...new Set((await statesOf(writer)).map(({ referenceId }) => referenceId)),
];

it("opening a lane's log fences the signer's other writers, and the new writer reads only the signer's records", async () => {
  const log = createLog();
  const before = await log.openWriter(ONE);
  await before.append({ ...EMPTY_CHANGE, states: [stateOf(ONE, 'a'), stateOf(ONE, 'b')] });
  await (await log.openWriter(OTHER)).append({ ...EMPTY_CHANGE, states: [stateOf(OTHER, 'other')] });
  const next = await log.openWriter(ONE);
  expect(await namesOf(next)).toEqual(['a', 'b']);
  expect((await statesOf(next))[0]).toEqual(stateOf(ONE, 'a'));
  await expect(before.append({ ...EMPTY_CHANGE, states: [stateOf(ONE, 'late')] })).rejects.toThrow();
  expect(await namesOf(await log.openWriter(ONE))).toEqual(['a', 'b']);
  expect(await log.lanesOf({ partition: 0, partitions: 1 })).toEqual([ONE, OTHER]);
  await log.others.sync({ isWhole: true });
  expect(log.others.isHeldByOther(ONE, stateOf(OTHER, 'other'))).toBe(true);
  expect(log.others.isHeldByOther(ONE, stateOf(ONE, 'a'))).toBe(false);
});

it("opening a lane's log waits for another signer's open transaction, and reads the records after it", async () => {
  const [sent, decided] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const log = createLog();
  const before = await log.openWriter(ONE);
  const hanging = await createLog(() => {
    sent.resolve();
    return decided.promise;
  }).openWriter(OTHER);
  const appending = hanging.append({ ...EMPTY_CHANGE, states: [stateOf(OTHER, 'open')] });
  await sent.promise;
  // The record is committed but follows the open transaction, so consumers cannot read it yet.
  await before.append({ ...EMPTY_CHANGE, states: [stateOf(ONE, 'after open')] });
  requested = 0;
  const next = log.openWriter(ONE);
  await until('the new writer waits for the open transaction', () => requested > 4);
  decided.resolve();
  await appending;
  expect(await namesOf(await next)).toContain('after open');
});

it("a lane's log stays in its partition when partitions are added", async () => {
  const [before, grown] = [createLog(), toGrownCount(ONE)];
  const early = await before.openWriter(ONE);
  await early.append({ ...EMPTY_CHANGE, states: [stateOf(ONE, 'early')], transactions: [highWaterOf(ONE, 7)] });
  await stores.addPartitions(grown);
  // A running writer stays in its partition even after another caller reads the new count.
  await before.openWriter(OTHER);
  await early.append({ ...EMPTY_CHANGE, states: [stateOf(ONE, 'running')] });
  const next = await createLog().openWriter(ONE);
  expect(await namesOf(next)).toEqual(expect.arrayContaining(['early', 'running']));
  expect(await next.readTransactions()).toContainEqual(highWaterOf(ONE, 7));
  await next.append({ ...EMPTY_CHANGE, states: [stateOf(ONE, 'next')] });
  const last = await createLog().openWriter(ONE);
  expect(await namesOf(last)).toEqual(expect.arrayContaining(['early', 'running', 'next']));
  expect(await createLog().lanesOf({ partition: partitionOf(ONE, grown), partitions: grown })).toContainEqual(ONE);
});

it("opening a lane's log fails with a reason if the signer's records are in several partitions", async () => {
  const topic = stores.prefix + TOPICS.mintStates.name;
  const state = stateOf(ONE, 'astray');
  const publisher = await openAtomicPublisher({ brokers: testStores().kafka, name: `${stores.prefix}astray` });
  opened.push(publisher);
  const value = frameRecord(stores.schemaIdOf(topic), mintStateCodec.encode(state));
  const partition = partitionOf(ONE, toGrownCount(ONE));
  await publisher.publish([{ topic, partition, key: Buffer.from(toMintStateKey(state)), value, headers: {} }]);
  const openError = async () => {
    try {
      await (await createLog().openWriter(ONE)).close();
      return '';
    } catch (fault) {
      return String(fault);
    }
  };
  // Brokers report added partitions with a delay.
  const isRejected = async () => /are in several partitions of .*\(0, \d+\)/.test(await openError());
  await until('opening the log fails', isRejected);
  await expect(createLog().openWriter(OTHER)).resolves.toBeDefined();
});

function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

it('a lane takes less than 400 bytes of memory per settled asset', { timeout: 60_000 }, async () => {
  const lane = { chain: CHAIN, signer: Buffer.alloc(20, 0x77) };
  const [count, batchSize] = [20_000, 2_000];
  const writer = await createLog().openWriter(lane);
  for (let from = 0; from < count; from += batchSize) {
    const states = Array.from({ length: batchSize }, (_, at) => {
      const status = at % 2 === 0 ? 'succeeded' : 'failed';
      const settled = { status, stage: 'settled', revision: 2 } as const;
      return { ...stateOf(lane, `${'long '.repeat(20)}${from + at}`), ...settled };
    });
    await writer.append({ ...EMPTY_CHANGE, states });
  }
  const log = createLog();
  const before = usedBytes();
  const opened = await MintLane.takeOver({
    lane,
    log,
    rules: {} as ChainRules,
    signer: {} as LaneSigner,
    nodes: createNodeChoice([]),
    activityIdOf: () => Buffer.alloc(16),
    isUnlinked: () => false,
    clock: { wallClockMs: () => 0, monotonicMs: () => 0 },
  });
  // The last read's buffers are released with a delay.
  await until('less than 400 bytes per asset remain', () => (usedBytes() - before) / count < 400);
  expect(opened.ledger.isHeld(stateOf(lane, `${'long '.repeat(20)}0`))).toBe(true);
  expect(log.others.isHeldByOther(ONE, stateOf(lane, `${'long '.repeat(20)}0`))).toBe(true);
  await opened.close();
});

const partitionOf = (lane: SignerLane, count: number) => toPartition(Buffer.from(toSignerKey(lane)), count);

/** Finds a partition count for which the signer's key no longer maps to the first partition. */
function toGrownCount(lane: SignerLane): number {
  let count = 2;
  while (partitionOf(lane, count) === 0) count++;
  return count;
}

const highWaterOf = ({ chain, signer }: SignerLane, nonce: number): MintTransactionRecord => ({
  chain,
  signer,
  nonce,
  variant: 0,
  kind: 'high_water',
  contractAddress: null,
  assets: [],
  hash: Buffer.alloc(32),
  signedBytes: Buffer.alloc(0),
  gasLimit: 0,
  maxFeePerGas: '0',
  maxPriorityFeePerGas: '0',
  genesisHash: Buffer.alloc(32, 1),
  loggedAt: 1,
});
