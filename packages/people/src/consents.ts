import { type ConsentRecord, consentCodec, createRecordReader, type SchemaSource } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import type { PeopleRebuild } from './rebuild.ts';

/** What an identity may have chosen; `not_set` is the absence of a choice and is never stored. */
export type ChosenStatus = ConsentRecord['status'];

/**
 * The place of a change in the log. The key of a record decides its partition, so for one identity the offset tells
 * which of two changes is later. Only if partitions were added meanwhile can an identity have changes in two of them.
 */
export interface ConsentPosition {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the clock of the log. Used only to compare two partitions. */
  readonly loggedAtMs: number;
}

/** A change of one identity's consent, at its place in the log. */
export interface LoggedConsent {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly identityKey: Buffer;
  readonly status: ChosenStatus;
  /** Epoch milliseconds by the clock of the gateway. Compared with an erasure's cut-off. */
  readonly receivedAt: number;
  readonly position: ConsentPosition;
}

/** Whose consent it is, and what. */
export type HeldConsent = Pick<LoggedConsent, 'identityKey' | 'status' | 'receivedAt' | 'position'>;

export type StoredConsent = Omit<HeldConsent, 'identityKey'>;

/**
 * The result of a change.
 * - applied: it is the current choice now
 * - superseded: the same or a later place was applied before and stays current
 * - fenced: the identity was erased, and the change is not later than the erasure's cut-off
 */
export type ApplyOutcome = 'applied' | 'superseded' | 'fenced';

/**
 * The current consent of every identity that has chosen one. The log is the source of truth; this store answers
 * questions.
 */
export interface ConsentStore {
  /**
   * Applies one change in one step. In whatever order changes arrive, the latest place in the log counts.
   * @throws MissingEpochFault, or a fault of the connection: then the same change may be applied again
   */
  apply(change: LoggedConsent): Promise<ApplyOutcome>;
  /**
   * The choice of an identity; null when there is none.
   * @throws MissingEpochFault, because an empty store would answer that nobody has chosen anything; LaggingStoreFault,
   * because a store that was restarted may answer with an older choice; MissingFencesFault, because it may answer with
   * the choice of an erased person
   */
  read(environmentId: string, identityKey: Buffer): Promise<StoredConsent | null>;
  /** For erasures: what is stored about these identities, even when `read` would throw. */
  readStored(environmentId: string, identityKeys: readonly Buffer[]): Promise<HeldConsent[]>;
  /**
   * For erasures: forgets these consents, unless the identity has chosen again since. Fence the identities first, or
   * else a change that is on its way comes back.
   * @returns how many were forgotten
   */
  forget(environmentId: string, consents: readonly HeldConsent[]): Promise<number>;
  syncState(): Promise<ConsentSyncState>;
  /**
   * Notes that the store has everything of the log up to `ends` (for each partition the offset after the last record).
   * @returns false, and changes nothing, when `run` is over: what was applied in it may be lost again
   */
  markCurrent(run: string, ends: ReadonlyMap<number, number>): Promise<boolean>;
}

/**
 * How far the store is compared with its log. A run of the store lasts from its start, or its promotion in a failover,
 * to the next one.
 */
export interface ConsentSyncState {
  /** Names the present run. */
  readonly run: string;
  /** False from the start of a run until somebody has brought in what the last run may have lost. */
  readonly isCurrent: boolean;
  /**
   * For each partition the greatest offset applied while the store was current, written in one step with the consent.
   */
  readonly applied: ReadonlyMap<number, number>;
}

/** The store was restarted and may lack the last changes. */
export class LaggingStoreFault extends Error {
  override readonly name = 'LaggingStoreFault';
  constructor() {
    super('the consent store was started anew and may lack the last changes: they are brought in from the log');
  }
}

/** Whether a change at `place` is later than the stored one. The table's view `consents_current` has the same rule. */
export function isLater(place: ConsentPosition, stored: ConsentPosition): boolean {
  if (place.partition === stored.partition) return place.offset > stored.offset;
  if (place.loggedAtMs !== stored.loggedAtMs) return place.loggedAtMs > stored.loggedAtMs;
  return place.partition > stored.partition;
}

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
  store: Pick<ConsentStore, 'syncState' | 'markCurrent' | 'apply'>,
  log: ConsentLog,
): Promise<number | null> {
  const { run, isCurrent, applied } = await store.syncState();
  if (isCurrent) return null;
  const decode = createDecode(log);
  const bounds = await log.bounds();
  let count = 0;
  for (const { partition, start, end } of bounds) {
    const from = Math.max(start, Math.min(end, applied.get(partition) ?? start) - READ_AGAIN_OFFSETS);
    for await (const batch of inBatches(log.read({ partition, start: from, end }), CHANGES_A_CALL)) {
      if ((await store.syncState()).isCurrent) return count;
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
  return async (partition: number, { offset, timestampMs, value }: ConsentBytes): Promise<LoggedConsent | null> => {
    const found = await read(value);
    if (found.kind === 'unreadable') return null;
    const { environmentId, identityKey, status, receivedAt } = found.record;
    return { environmentId, identityKey, status, receivedAt, position: { partition, offset, loggedAtMs: timestampMs } };
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
  rows: AsyncIterable<LoggedConsent> | Iterable<LoggedConsent>,
): Promise<RebuiltConsents> {
  const rebuilt: RebuiltConsents = { applied: 0, superseded: 0, fenced: 0 };
  const load = async (changes: readonly LoggedConsent[]) => {
    for (const outcome of await rebuild.loadConsents(changes)) rebuilt[outcome]++;
  };
  let waiting: LoggedConsent[] = [];
  for await (const row of rows) {
    waiting.push(row);
    if (waiting.length < ROWS_A_CALL) continue;
    await load(waiting);
    waiting = [];
  }
  await load(waiting);
  return rebuilt;
}
