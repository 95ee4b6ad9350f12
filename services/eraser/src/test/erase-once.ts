import type { ErasureReceipt, ErasureRequest } from '@playline/erasure';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { openMemoryPeople } from '@playline/people/memory';
import { StoreFault } from '@playline/stores';
import { beginBatch, finishBatch } from '../steps/erase-batch.ts';

// Completes all waiting requests in the ClickHouse database CLICKHOUSE_TARGET, in a process with a limited heap. As in
// the eraser, the batch for the environment `many` starts concurrently with the batch for all other environments.
// Prints the number of receipts and the milliseconds per step.
const target = JSON.parse(process.env.CLICKHOUSE_TARGET!);
const [rows, records, people] = [openErasureRows(target), openErasureRecords(target), openMemoryPeople()];
await people.rebuild.mintEpoch();
const unfinished = await records.readUnfinished();
for (const { erasureId, environmentId, subjectKeys: keys, cutoffAt: cutoffMs } of unfinished)
  await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs, lapsesAtMs: null });
const steps: Record<string, number> = {};
let [step, startedMs] = ['', performance.now()];
const recordStep = (next: string) => {
  if (step !== '') steps[step] = Math.round(performance.now() - startedMs);
  [step, startedMs] = [next, performance.now()];
};
const parts = {
  rows,
  records,
  people,
  generation: 0,
  wallClockMs: Date.now,
  pause: async () => {},
  onStep: recordStep,
  republishLater: async (batchId: Buffer) => void (await rows.findLaterLinks(batchId)),
  barrier: { linksStored: async () => [], allStored: async () => ({}), linkCommits: async () => new Map() },
};
const { signal } = new AbortController();
const [many, others] = [true, false].map((isMany) =>
  unfinished.filter(({ environmentId }) => (environmentId === 'many') === isMany),
) as [ErasureRequest[], ErasureRequest[]];
const onHeavy = () => {
  throw new Error('a person in another environment has many links');
};
/** Retries transient faults, as the eraser does. Sockets may time out while the other batch uses the CPU. */
const begin = (requests: readonly ErasureRequest[], bounds = {}): ReturnType<typeof beginBatch> =>
  beginBatch(parts, requests, signal, bounds).catch((fault: unknown) => {
    if (fault instanceof StoreFault && fault.kind === 'transient') return begin(requests, bounds);
    throw fault;
  });
const batches = await Promise.all([begin(many), others.length === 0 ? null : begin(others, { onHeavy })]);
const receipts: ErasureReceipt[] = [];
for (const batch of batches)
  if (batch !== null) for (const receipt of await finishBatch(parts, batch, signal)) receipts.push(receipt);
recordStep('');
const peakMb = Math.round(process.resourceUsage().maxRSS / 1024);
const identities = receipts.map(({ closureCount }) => closureCount);
process.stdout.write(JSON.stringify({ receipts: receipts.length, identities, steps, peakMb }));
await Promise.all([rows.close(), records.close()]);
