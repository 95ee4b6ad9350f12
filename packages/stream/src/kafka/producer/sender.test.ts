import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toPartition } from '../../murmur2.ts';
import type { OutgoingRecord, RecordPlace } from '../../ports.ts';
import { createPartitioner, type Shipment, takeBatches } from './batch-plan.ts';
import { toVerdict, type Verdict } from './broker-faults.ts';
import { Sender } from './sender.ts';
import type { EncodedBatch, Wire } from './wire.ts';

const NOT_LEADER = 6;
const TIMED_OUT = 7;
const TOO_LARGE = 10;
const OUT_OF_ORDER = 45;
const BATCH_BYTES_MAX = 400;
const PARTITIONS = 2;

/** What happens to one request: it arrives or not, and its answer does or not; or the broker says something else. */
type Fate = 'fine' | 'request lost' | 'answer lost' | 'late' | 'not leader' | 'timed out' | 'state lost';

/** A broker that keeps Kafka's rule of sequences, on a bad line. */
class FakeCluster implements Wire {
  readonly log = new Map<number, { bytes: Buffer; count: number }[]>();
  readonly #producers = new Map<string, { epoch: number; next: number; recent: Map<string, number> }>();
  readonly #fates: Fate[];
  /** Requests that arrive after everything else that is sent later. */
  #late: EncodedBatch[] = [];
  #ids = 0n;

  constructor(fates: Fate[]) {
    this.#fates = [...fates];
  }

  partitionCount = () => PARTITIONS;
  leaderOf = () => 1;
  refresh = async () => [];
  newProducerId = async () => ({ producerId: this.#ids++, producerEpoch: 0 });

  /** The broker's side of idempotence: `ProducerAppendInfo.checkSequence`. A known batch is told its first offset again. */
  #append({ partition, bytes }: EncodedBatch): Verdict {
    const producerId = bytes.readBigInt64BE(43);
    const epoch = bytes.readInt16BE(51);
    const first = bytes.readInt32BE(53);
    const count = bytes.readInt32BE(57);
    if (bytes.length > BATCH_BYTES_MAX) return toVerdict(TOO_LARGE);
    const name = `${partition}/${producerId}`;
    const state = this.#producers.get(name);
    if (state !== undefined && epoch < state.epoch) return toVerdict(47);
    const known = state?.epoch === epoch ? state.recent.get(`${first}-${count}`) : undefined;
    if (known !== undefined) return toVerdict(0, { offset: known, loggedAtMs: -1 });
    const expected = state === undefined || state.epoch < epoch ? 0 : state.next;
    if (first !== expected && state !== undefined) return toVerdict(OUT_OF_ORDER);
    const log = this.log.get(partition) ?? [];
    const baseOffset = log.reduce((sum, each) => sum + each.count, 0);
    this.log.set(partition, [...log, { bytes: Buffer.from(bytes), count }]);
    const recent = state?.epoch === epoch ? state.recent : new Map<string, number>();
    recent.set(`${first}-${count}`, baseOffset);
    this.#producers.set(name, { epoch, next: first + count, recent: new Map([...recent].slice(-5)) });
    return toVerdict(0, { offset: baseOffset, loggedAtMs: -1 });
  }

  async produce(_node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]> {
    const fate = this.#fates.shift() ?? 'fine';
    const lost: Verdict[] = batches.map(() => ({ kind: 'again', ambiguous: true, code: 'NO_ANSWER' }));
    if (fate === 'request lost') return lost;
    if (fate === 'late') {
      this.#late.push(...batches.map((batch) => ({ ...batch, bytes: Buffer.from(batch.bytes) })));
      return lost;
    }
    if (fate === 'not leader') return batches.map(() => toVerdict(NOT_LEADER));
    if (fate === 'state lost') this.#producers.clear();
    const verdicts = batches.map((batch) => this.#append(batch));
    if (fate === 'timed out') return batches.map(() => toVerdict(TIMED_OUT));
    return fate === 'answer lost' ? lost : verdicts;
  }

  deliverLate(): void {
    for (const batch of this.#late.splice(0)) this.#append(batch);
  }

  /** Values in the log of a partition, by the records of its batches (one byte a value at a known place). */
  values(partition: number): string[] {
    return (this.log.get(partition) ?? []).flatMap(({ bytes }) => bytes.toString('latin1').match(/#\d+#/g) ?? []);
  }
}

function createShipments(sizes: readonly number[], pad: number) {
  const results = new Map<string, 'acknowledged' | 'failed'>();
  const places = new Map<string, RecordPlace>();
  let next = 0;
  const shipments = sizes.map((size): Shipment => {
    const texts = Array.from({ length: size }, () => `#${next++}#`);
    const records = texts.map((text): OutgoingRecord => {
      const key = Buffer.from(String(Number.parseInt(text.slice(1), 10) % 3));
      return { topic: 't', key, value: Buffer.from(text.padEnd(pad, '.')) };
    });
    const done = (fault: Error | null) => {
      for (const text of texts) results.set(text, fault === null ? 'acknowledged' : 'failed');
    };
    const onPlace = (place: RecordPlace) => void places.set(texts[0]!, place);
    return { records, bytes: 0, dueAt: 0, taken: 0, open: size, fault: null, done, onPlace };
  });
  return { shipments, results, places };
}

function settle(shipment: Shipment, count: number, fault: Error | null) {
  shipment.fault ??= fault;
  shipment.open -= count;
  if (shipment.open > 0) return;
  shipment.done?.(shipment.fault);
  shipment.done = null;
}

async function run(fates: Fate[], sizes: readonly number[], pad = 10) {
  const cluster = new FakeCluster(fates);
  const sender = new Sender(cluster, settle, 1);
  const { shipments, results, places } = createShipments(sizes, pad);
  const partitionOf = createPartitioner(cluster, toPartition);
  for (const shipment of shipments) {
    const queue = [shipment];
    while (queue.length > 0) await sender.deliver(takeBatches(queue, partitionOf));
    cluster.deliverLate();
  }
  const stored = [0, 1].flatMap((partition) => cluster.values(partition));
  return { cluster, results, stored, places };
}

const fate = fc.constantFrom<Fate>('fine', 'fine', 'request lost', 'answer lost', 'late', 'not leader', 'timed out');

describe('the sender', () => {
  it('stores every acknowledged record once and in order, however requests and answers are lost', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 });
    const property = fc.asyncProperty(fc.array(fate, { maxLength: 4 }), sizes, async (fates, counts) => {
      const { cluster, results, stored } = await run(fates, counts);
      expect([...results.values()].every((result) => result === 'acknowledged')).toBe(true);
      expect(stored.toSorted()).toEqual([...results.keys()].toSorted());
      for (const partition of [0, 1]) {
        const order = cluster.values(partition).map((text) => Number.parseInt(text.slice(1), 10));
        expect(order).toEqual(order.toSorted((a, b) => a - b));
      }
    });
    await fc.assert(property, { numRuns: 300 });
  });

  it('tells the place at which each lone record stands, also when only a repetition was answered', async () => {
    const lone = fc.array(fc.constant(1), { minLength: 1, maxLength: 6 });
    const property = fc.asyncProperty(fc.array(fate, { maxLength: 6 }), lone, async (fates, counts) => {
      const { cluster, results, places } = await run(fates, counts);
      expect([...places.keys()]).toEqual([...results.keys()]);
      for (const [text, { partition, offset }] of places) expect(cluster.values(partition)[offset]).toBe(text);
    });
    await fc.assert(property, { numRuns: 200 });
  });

  it('tells the places of lone records that travel in one batch, also when it is split', async () => {
    const cluster = new FakeCluster([]);
    const { shipments, places } = createShipments(Array(8).fill(1), 90);
    await new Sender(cluster, settle, 1).deliver(takeBatches([...shipments], () => 0));
    expect(cluster.log.get(0)!.length).toBeGreaterThan(1);
    expect([...places]).toEqual(
      cluster.values(0).map((text, offset) => [text, { partition: 0, offset, loggedAtMs: null }]),
    );
  });

  it('goes on under a new identity when the broker has forgotten it', async () => {
    const { results, stored } = await run(['fine', 'state lost', 'fine'], [2, 2, 2]);
    expect([...results.values()]).toEqual(Array(6).fill('acknowledged'));
    expect(stored).toHaveLength(6);
  });

  it('splits a batch that is too large, and fails the one record that is', async () => {
    const { results, stored } = await run([], [10], 90);
    expect([...results.values()]).toEqual(Array(10).fill('acknowledged'));
    expect(stored).toHaveLength(10);
    const large = await run([], [1], BATCH_BYTES_MAX);
    expect([...large.results.values()]).toEqual(['failed']);
  });

  it.each(['before', 'after'])(
    'takes a new epoch after a send was given up: arriving %s the next, it swallows no other record',
    async (moment) => {
      const cluster = new FakeCluster(['late']);
      const sender = new Sender(cluster, settle, 1);
      const { shipments, results } = createShipments([1, 1, 1], 10);
      const deliver = (shipment: Shipment) => sender.deliver(takeBatches([shipment], () => 0));
      const given = deliver(shipments[0]!);
      shipments[0]!.done?.(new Error('time is up'));
      shipments[0]!.done = null;
      await given;
      if (moment === 'before') cluster.deliverLate();
      await deliver(shipments[1]!);
      cluster.deliverLate();
      await deliver(shipments[2]!);
      expect(Object.fromEntries(results)).toEqual({ '#0#': 'failed', '#1#': 'acknowledged', '#2#': 'acknowledged' });
      expect(cluster.values(0)).toEqual(moment === 'before' ? ['#0#', '#1#', '#2#'] : ['#1#', '#2#']);
    },
  );
});
