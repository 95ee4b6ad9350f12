import { consentCodec, createRecordReader, type SchemaSource } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import type { ApplyOutcome, ConsentStore, PlacedConsent } from './consents.ts';
import type { PeopleRebuild } from './rebuild.ts';

/** A record of the topic as bytes, at its place. */
export interface ConsentBytes {
  readonly offset: number;
  /** Epoch milliseconds by the clock of the log. */
  readonly timestampMs: number;
  readonly value: Buffer | null;
}

/** The parts of the log of consents that are read here. */
export interface ConsentLog {
  /** Offsets from `start` to before `end`. @throws Error when the topic does not exist or cannot be asked */
  bounds(): Promise<readonly { partition: number; start: number; end: number }[]>;
  /** Records from `start` to before `end`, in order. @throws Error of the log */
  read(range: { partition: number; start: number; end: number }): AsyncIterable<ConsentBytes>;
  readonly schemaOf: SchemaSource;
}

/**
 * How far behind the greatest applied offset is read again. Gateways apply at once but not in the order of the log: of a
 * change that a 204 has confirmed and Redis has lost again, the offset may be lower than the greatest that survived, by
 * what was logged between its own logging and its being applied. That is at most the longest deadline of a request,
 * 20 s, so one partition would have to take more than 500 changes a second to pass this. By offsets, not by time: clocks
 * of brokers go back too. It costs the reading of some 2 MB a partition, once a start of the store.
 */
const READ_AGAIN_OFFSETS = 10_000;
/** Applied in one call: as much as is worth a round trip, and little enough that requests are served in between. */
const CHANGES_A_CALL = 250;

/**
 * Brings back what a store that was started again may have lost: the end of the log. Reads from the position that the
 * store keeps beside its data, which was lost together with them. A change counts by its place in the log. So this may
 * run beside gateways that write, and in several processes at once: the first one to finish ends the work of the
 * others.
 * @returns changes read; null when the store lacks nothing
 * @throws MissingEpochFault of an emptied store, which is rebuilt with its fences first; Error of the log or the store
 */
export async function catchUpConsents(
  store: Pick<ConsentStore, 'standing' | 'markCurrent' | 'apply'>,
  log: ConsentLog,
): Promise<number | null> {
  const { run, isCurrent, applied } = await store.standing();
  if (isCurrent) return null;
  const decode = createDecode(log);
  const bounds = await log.bounds();
  let count = 0;
  for (const { partition, start, end } of bounds) {
    const from = Math.max(start, Math.min(end, applied.get(partition) ?? start) - READ_AGAIN_OFFSETS);
    for await (const batch of inBatches(log.read({ partition, start: from, end }), CHANGES_A_CALL)) {
      if ((await store.standing()).isCurrent) return count;
      const changes = await Promise.all(batch.map((record) => decode(partition, record)));
      await Promise.all(changes.filter((change) => change !== null).map((change) => store.apply(change)));
      count += batch.length;
    }
  }
  if (await store.markCurrent(run, new Map(bounds.map(({ partition, end }) => [partition, end])))) return count;
  throw new Error('the consent store was started anew meanwhile');
}

/** A record that cannot be read is skipped here. The event writer sends it to the dead letters. */
function createDecode({ schemaOf }: ConsentLog) {
  const read = createRecordReader({ schemaOf, createReader: consentCodec.decoderOf });
  return async (partition: number, { offset, timestampMs, value }: ConsentBytes): Promise<PlacedConsent | null> => {
    const found = await read(value);
    if (found.kind === 'unreadable') return null;
    const { environmentId, identityKey, status, receivedAt } = found.record;
    return { environmentId, identityKey, status, receivedAt, place: { partition, offset, loggedAtMs: timestampMs } };
  };
}

/** What a rebuild has done. */
export type RebuiltConsents = Record<ApplyOutcome, number>;

/** Changes per call. More would not make it faster. */
const ROWS_A_CALL = 1_000;

/**
 * Restores consents from their history, in any order and repeatedly: only places count, so gateways may write
 * meanwhile. Load the fences first, or rows of erased identities come back.
 */
export async function rebuildConsents(
  rebuild: Pick<PeopleRebuild, 'loadConsents'>,
  rows: AsyncIterable<PlacedConsent> | Iterable<PlacedConsent>,
): Promise<RebuiltConsents> {
  const rebuilt: RebuiltConsents = { applied: 0, superseded: 0, fenced: 0 };
  const load = async (changes: readonly PlacedConsent[]) => {
    for (const outcome of await rebuild.loadConsents(changes)) rebuilt[outcome]++;
  };
  let waiting: PlacedConsent[] = [];
  for await (const row of rows) {
    waiting.push(row);
    if (waiting.length < ROWS_A_CALL) continue;
    await load(waiting);
    waiting = [];
  }
  await load(waiting);
  return rebuilt;
}
