import { protocolErrorsCodesById } from '@platformatic/kafka';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import type { PublishedRecord, RecordMetadata } from '../../ports.ts';
import { type BatchOutcome, SimulatedCluster, type SimulationOptions, SUCCESS } from '../test/simulated-cluster.ts';
import { type SendCall, takeBatches } from './batch-plan.ts';
import { type ProduceFault, toVerdict } from './broker-faults.ts';
import { Sender } from './sender.ts';

const BATCH_BYTES_MAX = 400;
const [TOPIC_AUTHORIZATION_FAILED, MESSAGE_TOO_LARGE, OUT_OF_ORDER, DUPLICATE] = [29, 10, 45, 46];
const NOT_LEADER = 6;
const LOST: BatchOutcome = { arrives: 'now', response: 'lost' };
const NEVER: BatchOutcome = { arrives: 'never', response: 'lost' };

/** Error codes after an append, if a fault occurs while the leader waits for replicas. */
const AFTER_APPEND = [NOT_LEADER, 3, 56, 7, 20];
/** `AFTER_APPEND`, all retriable protocol error codes, and an unknown code. */
const RETRIABLE = [...AFTER_APPEND, ...Object.keys(protocolErrorsCodesById).map(Number), 32_000].filter(
  (code) => toVerdict(code).kind === 'retry',
);
/** Error codes that prove that nothing was appended. */
const PERMANENT = [TOPIC_AUTHORIZATION_FAILED, MESSAGE_TOO_LARGE, OUT_OF_ORDER, DUPLICATE, 18, 47, 59, 87];

interface Plan {
  sends: readonly (readonly number[])[];
  /** Number of batches after which each call is abandoned. Calls that are not in the list are never abandoned. */
  abandonAfter?: readonly number[];
  pad?: number;
}

async function run(plan: Plan, simulation: SimulationOptions = {}) {
  const partitions = simulation.partitions ?? 2;
  const acknowledged: string[] = [];
  const failed: string[] = [];
  const offsets = new Map<string, RecordMetadata>();
  const abandonAfter = [...(plan.abandonAfter ?? [])];
  let waiting: { sendCall: SendCall; abandonAfter: number }[] = [];
  const onBatch = () => {
    for (const each of waiting) if (--each.abandonAfter <= 0) end(each.sendCall, new Error('abandoned'));
  };
  const cluster = new SimulatedCluster({ ...simulation, onBatch });
  const sender = new Sender(cluster, settle, 0);
  let next = 0;
  const toSendCall = (size: number): SendCall => {
    const texts = Array.from({ length: size }, () => `#${next++}#`);
    const records = texts.map((text): PublishedRecord => {
      return { topic: 't', key: null, value: Buffer.from(text.padEnd(plan.pad ?? 10, '.')) };
    });
    const done = (fault: Error | null) => void (fault === null ? acknowledged : failed).push(...texts);
    const onStored = (stored: RecordMetadata) => void offsets.set(texts[0]!, stored);
    const attemptsUntil = Number.POSITIVE_INFINITY;
    return { records, bytes: 0, dueAt: 0, attemptsUntil, batched: 0, pending: size, fault: null, done, onStored };
  };
  const partitionOf = (_: SendCall, { value }: PublishedRecord) =>
    Number.parseInt(value!.subarray(1).toString(), 10) % partitions;
  for (const sizes of plan.sends) {
    const sendCalls = sizes.map(toSendCall);
    waiting = sendCalls.map((sendCall) => ({
      sendCall,
      abandonAfter: abandonAfter.shift() ?? Number.POSITIVE_INFINITY,
    }));
    const queue = [...sendCalls];
    while (queue.length > 0) await sender.deliver(takeBatches(queue, partitionOf));
  }
  cluster.arriveLate();
  const stored = Array.from({ length: partitions }, (_, partition) => cluster.values(partition));
  return { cluster, sender, acknowledged, failed, offsets, stored };
}

function end(sendCall: SendCall, fault: Error | null) {
  sendCall.done?.(fault);
  sendCall.done = null;
}

function settle(sendCall: SendCall, count: number, fault: Error | null) {
  sendCall.fault ??= fault;
  sendCall.pending -= count;
  if (sendCall.pending === 0) end(sendCall, sendCall.fault);
}

type Outcome = Awaited<ReturnType<typeof run>>;

/** Asserts that every acknowledged record is stored exactly once, and in order per partition. */
function expectExact({ acknowledged, stored }: Outcome): void {
  const all = stored.flat();
  const lost = acknowledged.filter((text) => !all.includes(text));
  const duplicated = all.filter((text, index) => all.indexOf(text) !== index);
  expect({ lost, duplicated }).toEqual({ lost: [], duplicated: [] });
  for (const values of stored) {
    const order = values.filter((text) => acknowledged.includes(text)).map((text) => Number(text.replaceAll('#', '')));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  }
}

function expectOffsets({ offsets, stored }: Outcome): void {
  for (const [text, { partition, offset }] of offsets) expect(stored[partition]![offset]).toBe(text);
}

const later = fc.integer({ min: 1, max: 6 });
const unreliable: fc.Arbitrary<BatchOutcome> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(SUCCESS) },
  fc.constantFrom<BatchOutcome>(LOST, NEVER, { arrives: 'never', response: 'no connection' }),
  later.map((arrives): BatchOutcome => ({ arrives, response: 'lost' })),
  fc.record({
    arrives: fc.constantFrom<BatchOutcome['arrives']>('now', 'never'),
    response: fc.constantFrom(...RETRIABLE),
  }),
);
const refused: fc.Arbitrary<BatchOutcome> = fc.oneof(
  fc.constantFrom(...PERMANENT).map((response): BatchOutcome => ({ arrives: 'never', response })),
  fc.constantFrom(90, 150, 400).map((bytesMax): BatchOutcome => ({ ...SUCCESS, bytesMax })),
);
const outcomes = fc.array(unreliable, { maxLength: 8 });
const sends = (sendCall: fc.Arbitrary<number>) =>
  fc.array(fc.array(sendCall, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 5 });
const size = fc.oneof({ weight: 2, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 5 }));
const simulation = (each: fc.Arbitrary<BatchOutcome>) =>
  fc.record({
    outcomes: fc.array(each, { maxLength: 12 }),
    leaders: fc.array(fc.boolean(), { maxLength: 8 }),
    partitions: fc.integer({ min: 1, max: 3 }),
    // The last epoch of a producer id is 32,766.
    firstEpoch: fc.constantFrom(0, 0, 32_765, 32_766),
    isOld: fc.boolean(),
  });
const abandonAfter = fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 12 });

afterEach(() => void vi.useRealTimers());

it('the sender stores every record once and in order when requests and responses are lost', async () => {
  const property = fc.asyncProperty(outcomes, sends(size), async (drawn, drawnSends) => {
    const outcome = await run({ sends: drawnSends }, { outcomes: drawn });
    expect(outcome.failed).toEqual([]);
    expect(outcome.stored.flat().toSorted()).toEqual(outcome.acknowledged.toSorted());
    expectExact(outcome);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 100, all: 300 }) });
});

it('acknowledged records are neither lost nor duplicated when batches are rejected, split or abandoned', async () => {
  const property = fc.asyncProperty(
    simulation(fc.oneof({ weight: 3, arbitrary: unreliable }, refused)),
    fc.record({ sends: sends(size), abandonAfter, pad: fc.constantFrom(10, 40) }),
    async (drawn, plan) => {
      const outcome = await run(plan, drawn);
      expectExact(outcome);
      expect(outcome.acknowledged.length + outcome.failed.length).toBe(plan.sends.flat().reduce((a, b) => a + b, 0));
    },
  );
  await fc.assert(property, { numRuns: runsOf({ quick: 150, all: 1_000 }) });
});

it('the sender returns the offset of each single record, even if only a retry received a response', async () => {
  const property = fc.asyncProperty(
    simulation(unreliable),
    sends(fc.constant(1)),
    abandonAfter,
    async (drawn, sends, p) => {
      const outcome = await run({ sends, abandonAfter: p }, drawn);
      expectOffsets(outcome);
      for (const text of outcome.acknowledged) expect([...outcome.offsets.keys()]).toContain(text);
    },
  );
  await fc.assert(property, { numRuns: runsOf({ quick: 100, all: 300 }) });
});

it('an appended record that was rejected as retriable and abandoned is not mistaken for a later record', async () => {
  const misattributed: number[] = [];
  for (const response of RETRIABLE) {
    const plan = { sends: [[1], [1], [1]], abandonAfter: [1] };
    const outcome = await run(plan, { outcomes: [{ arrives: 'now', response }], partitions: 1 });
    expect(outcome).toMatchObject({ failed: ['#0#'], acknowledged: ['#1#', '#2#'] });
    if (outcome.stored.flat().length < 3 || outcome.offsets.get('#1#')?.offset !== 1) misattributed.push(response);
  }
  expect(misattributed).toEqual([]);
});

it('the sender ends the epoch of an abandoned batch after the other batches have settled', async () => {
  // Partition 0 is abandoned after its first attempt. Partition 1 is stored, but its response is lost three times.
  const plan = { sends: [[1, 1], [2]], abandonAfter: [2] };
  const outcome = await run(plan, { outcomes: [LOST, LOST, LOST, LOST, LOST] });
  expect(outcome.failed).toEqual(['#0#']);
  expect(outcome.stored).toEqual([
    ['#0#', '#2#'],
    ['#1#', '#3#'],
  ]);
  expect(outcome.acknowledged).toEqual(['#1#', '#2#', '#3#']);
  expect(outcome.cluster.newProducerIds).toHaveLength(1);
});

it.each([0, 3])('split batches share no sequence number while another batch is ambiguous %i times', async (times) => {
  // The first half is appended, but its retry is rejected permanently, so the sender does not know that it is stored.
  const half: BatchOutcome[] = [
    { arrives: 'now', response: NOT_LEADER },
    { arrives: 'never', response: TOPIC_AUTHORIZATION_FAILED },
  ];
  const outcomeIn = (round: number) => (round < times ? LOST : SUCCESS);
  const split: BatchOutcome = { ...SUCCESS, bytesMax: 90 };
  const all = [split, ...half].flatMap((each, round) => [each, outcomeIn(round)]);
  const outcome = await run({ sends: [[1, 1, 1]] }, { outcomes: times === 0 ? [split, SUCCESS, ...half] : all });
  expect(outcome).toMatchObject({ failed: ['#0#'], stored: [['#0#', '#2#'], ['#1#']] });
  expect(outcome.acknowledged.toSorted()).toEqual(['#1#', '#2#']);
});

it('the sender does not split a batch that may already be stored', async () => {
  const appended: BatchOutcome = { arrives: 'now', response: NOT_LEADER };
  const smaller: BatchOutcome = { ...SUCCESS, bytesMax: 90 };
  const outcome = await run({ sends: [[1, 1], [1]] }, { outcomes: [appended, smaller], partitions: 1 });
  expect(outcome).toMatchObject({ failed: ['#0#', '#1#'], acknowledged: ['#2#'], stored: [['#0#', '#1#', '#2#']] });
});

it.each([DUPLICATE, OUT_OF_ORDER])('error code %i does not prove that a batch is stored', async (code) => {
  const outcome = await run({ sends: [[1]] }, { outcomes: [{ arrives: 'never', response: code }], partitions: 1 });
  expect(outcome).toMatchObject({ acknowledged: ['#0#'], stored: [['#0#']] });
  expectOffsets(outcome);
});

const rejectedId: BatchOutcome = { arrives: 'never', response: OUT_OF_ORDER };

it.each<[string, Plan, SimulationOptions, string[]]>([
  [
    'the last epoch of the old id has ended',
    { sends: [[1], [1]], abandonAfter: [1] },
    { outcomes: [LOST], firstEpoch: 32_766 },
    ['#0#'],
  ],
  [
    'the broker no longer knows the old id',
    { sends: [[2], [2], [2]] },
    { outcomes: [SUCCESS, SUCCESS, rejectedId] },
    [],
  ],
  [
    'the broker rejects the old id for a batch that may be stored',
    { sends: [[1], [1]] },
    { outcomes: [LOST, rejectedId], partitions: 1 },
    ['#0#'],
  ],
])('the sender requests a new producer id when %s', async (_, plan, options, failed) => {
  const outcome = await run(plan, options);
  expect(outcome.failed).toEqual(failed);
  expectExact(outcome);
  expect(outcome.cluster.newProducerIds).toHaveLength(2);
});

it('the sender keeps its epoch and producer id if no batch in flight was abandoned', async () => {
  const unreachable: BatchOutcome = { arrives: 'never', response: 'no connection' };
  const { cluster, stored } = await run(
    { sends: [[1], [1]], abandonAfter: [1] },
    { outcomes: [unreachable], partitions: 1 },
  );
  expect(stored).toEqual([['#1#']]);
  expect(cluster.log.get(0)![0]!.bytes.readInt16BE(51)).toBe(0);
  expect(cluster.newProducerIds).toHaveLength(1);
});

function toSendCall(
  text: string,
  report: (result: string) => void,
  attemptsUntil = Number.POSITIVE_INFINITY,
): SendCall {
  const records = [{ topic: 't', key: null, value: Buffer.from(text) }];
  const done = (fault: Error | null) =>
    report(`${text} ${fault === null ? 'stored' : ((fault as ProduceFault).code ?? fault.message)}`);
  return { records, bytes: 0, dueAt: 0, attemptsUntil, batched: 0, pending: 1, fault: null, done };
}

it.each([
  ['unsent', { arrives: 'never', response: 'no connection' }, ['#2#']],
  ['unacknowledged', LOST, ['#0#', '#1#', '#2#']],
] as const)("an %s record is not attempted after its caller's deadline", async (_, outcome, stored) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const onBatch = () => void vi.advanceTimersByTime(100);
  const cluster = new SimulatedCluster({ outcomes: [outcome as BatchOutcome], partitions: 1, onBatch });
  const sender = new Sender(cluster, settle, 0);
  const results: string[] = [];
  const open = (text: string, until?: number) => toSendCall(text, (result) => results.push(result), until);
  await sender.deliver(takeBatches([open('#0#', performance.now() + 100), open('#1#')], () => 0));
  await sender.deliver(takeBatches([open('#2#')], () => 0));
  expect(results).toEqual(['#0# DELIVERY_TIMEOUT', '#1# DELIVERY_TIMEOUT', '#2# stored']);
  expect(cluster.values(0)).toEqual(stored);
});

it("a record is not added to a batch after its caller's deadline", () => {
  expect(takeBatches([toSendCall('#0#', () => {}, performance.now() - 1)], () => 0)).toEqual([]);
});

it('the sender ends the epoch after an unexpected failure', async () => {
  const cluster = new SimulatedCluster({ outcomes: [LOST], partitions: 1 });
  const produce = cluster.produce;
  cluster.produce = async (...args) => {
    await produce.apply(cluster, args);
    throw new Error('unexpected');
  };
  const sender = new Sender(cluster, settle, 0);
  const results: string[] = [];
  const deliver = (text: string) =>
    sender.deliver(takeBatches([toSendCall(text, (result) => results.push(result))], () => 0));
  await expect(deliver('#0#')).rejects.toThrow('unexpected');
  cluster.produce = produce;
  await deliver('#1#');
  expect(results).toEqual(['#1# stored']);
  expect(cluster.values(0)).toEqual(['#0#', '#1#']);
});

it('the sender returns the offsets of single records in one batch, even if the batch is split', async () => {
  const outcome = await run({ sends: [Array(8).fill(1)], pad: 90 }, { partitions: 1, bytesMax: BATCH_BYTES_MAX });
  expect(outcome.cluster.log.get(0)!.length).toBeGreaterThan(1);
  expect(outcome.offsets.size).toBe(8);
  expectOffsets(outcome);
});

it('the sender splits a batch that is too large, and fails only a single record that is too large', async () => {
  const many = await run({ sends: [[10]], pad: 90 }, { bytesMax: BATCH_BYTES_MAX });
  expect(many.acknowledged).toHaveLength(10);
  expect(many.stored.flat()).toHaveLength(10);
  const large = await run({ sends: [[1]], pad: BATCH_BYTES_MAX }, { bytesMax: BATCH_BYTES_MAX });
  expect(large).toMatchObject({ failed: ['#0#'], acknowledged: [] });
});
