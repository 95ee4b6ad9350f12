import { createHash } from 'node:crypto';
import { StoreFault } from '@playline/stores';
import type { ErasureReceipt, ErasureRecords, ErasureRequest } from '../records.ts';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { ERASED_TABLES } from '../stores/tables.ts';
import { type TargetBatchesOptions, withTargets } from './batches.ts';

/** What a look into the store of people needs of it. */
export interface ErasedPeople {
  /** Null while the store is empty or half rebuilt: it would say of everybody that they are gone. */
  readEpoch(): Promise<string | null>;
  readonly graph: {
    rootOf(environmentId: string, key: Buffer): Promise<Buffer | null>;
    membersOf(environmentId: string, key: Buffer): Promise<readonly { key: Buffer; linkedAt: number }[]>;
  };
  readonly consents: {
    readStored(environmentId: string, keys: readonly Buffer[]): Promise<readonly { readonly receivedAt: number }[]>;
  };
}

export interface VerificationOptions extends Omit<TargetBatchesOptions, 'rows'> {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'findSurvivors' | 'findOnDisk' | 'dropTargets'>;
  readonly records: Pick<ErasureRecords, 'readReceipt' | 'readRequests' | 'readFences'>;
  /** Without it the store of people is not looked into, and its places are not in the answer. */
  readonly people?: ErasedPeople;
  /** Whether to look for deleted rows in files too. */
  readonly checkDisk: boolean;
}

/** Counts by store and place, as `clickhouse.events`; every place that was looked at, also with zero. */
export type Counts = Readonly<Record<string, number>>;

export interface Verification {
  readonly receipt: ErasureReceipt;
  /** Identities that were looked for, of `receipt.closureCount`. */
  readonly identities: number;
  /** Whether they are those of the receipt, by its hash; `incomplete` when some are not known any more. */
  readonly hash: 'matches' | 'differs' | 'incomplete';
  /** Ids of later erasures that have taken over fences of this one: why keys may be missing. */
  readonly laterErasures: readonly Buffer[];
  /** What is left of the erased: rows, links or consents not later than the cut-off. */
  readonly remaining: Counts;
  /** Rows that stand in files, deleted ones included; null when nobody looked. */
  readonly onDisk: Counts | null;
}

/** Whether everybody of the receipt was looked for and nothing was found; files count once the receipt says that they are clean. */
export function isVerified({ receipt, hash, remaining, onDisk }: Verification): boolean {
  const isNothing = (counts: Counts) => Object.values(counts).every((count) => count === 0);
  const isDiskDue = receipt.physicallyErasedAt !== null && onDisk !== null;
  return hash === 'matches' && isNothing(remaining) && (!isDiskDue || isNothing(onDisk));
}

/**
 * Looks now for what a receipt says is gone. Its keys are those of the fences that bear its id and those of the request:
 * of a person who was erased again the fences bear the later id. Where these are not all, the fences of that later erasure
 * are taken too if the hash says that they are the ones. What came behind the cut-off is the person's new data and
 * no survivor.
 * @returns null when the erasure has no receipt
 * @throws StoreFault, also when none of its keys is known; faults of the store of people
 */
export async function verifyReceipt(options: VerificationOptions, erasureId: Buffer): Promise<Verification | null> {
  const { records, rows, people } = options;
  const receipt = await records.readReceipt(erasureId);
  if (receipt === null) return null;
  const { environmentId, cutoffAt: cutoffMs } = receipt;
  const { known, laterErasures } = await readKeys(records, receipt);
  const keys = known.all;
  if (keys.length === 0)
    throw new StoreFault('no key of this erasure is known any more: nothing can be looked for', {
      kind: 'final',
      code: 'NO_TARGETS',
    });
  return withTargets(options, async (batches) => {
    for (const key of keys) await batches.add({ environmentId, key, cutoffMs });
    await batches.flush();
    const look = async (find: (batch: Buffer) => Promise<FoundRows[]>) => {
      const found: FoundRows[] = [];
      for (const batch of batches.ids) for (const each of await find(batch)) found.push(each);
      return toRowCounts(found);
    };
    const remaining = {
      ...(await look(rows.findSurvivors)),
      ...(people && (await countPeople(people, receipt, keys))),
    };
    const onDisk = options.checkDisk ? await look(rows.findOnDisk) : null;
    const shared = { receipt, identities: keys.length, hash: known.compare(receipt) };
    return { ...shared, laterErasures, remaining, onDisk };
  });
}

async function readKeys(records: VerificationOptions['records'], receipt: ErasureReceipt) {
  const { erasureId, environmentId, cutoffAt } = receipt;
  const [request] = await records.readRequests([erasureId]);
  const [known, ofRequest] = [new KnownKeys(request), new KnownKeys(request)];
  const later = new Map<string, Buffer>();
  for await (const fence of records.readFences()) {
    if (fence.environmentId !== environmentId) continue;
    if (fence.erasureId.equals(erasureId)) known.add(fence.key);
    else if (ofRequest.has(fence.key) && fence.cutoffMs >= cutoffAt)
      later.set(fence.erasureId.toString('hex'), fence.erasureId);
  }
  const laterErasures = [...later.values()];
  if (later.size === 0 || known.compare(receipt) !== 'incomplete') return { known, laterErasures };
  // Requests about one person that were done together have one closure, and its fences bear the id of one of them.
  const joint = new KnownKeys(request);
  for (const key of known.all) joint.add(key);
  for await (const fence of records.readFences())
    if (fence.environmentId === environmentId && later.has(fence.erasureId.toString('hex'))) joint.add(fence.key);
  return { known: joint.compare(receipt) === 'matches' ? joint : known, laterErasures };
}

function toRowCounts(found: readonly FoundRows[]): Counts {
  const counts = new Map(ERASED_TABLES.map(({ name }) => [name, 0]));
  for (const { table, rows } of found) counts.set(table, (counts.get(table) ?? 0) + rows);
  return Object.fromEntries([...counts].map(([table, rows]) => [`clickhouse.${table}`, rows]));
}

/** Identities that are linked, or have a consent, from before the cut-off. */
async function countPeople(people: ErasedPeople, receipt: ErasureReceipt, keys: readonly Buffer[]): Promise<Counts> {
  const { environmentId, cutoffAt } = receipt;
  const epoch = await people.readEpoch();
  let links = 0;
  for (const key of keys) {
    links += Number(await isLinked(people, { environmentId, key, cutoffAt }));
  }
  const stored = await people.consents.readStored(environmentId, keys);
  const consents = stored.filter(({ receivedAt }) => receivedAt <= cutoffAt).length;
  if (epoch === null || (await people.readEpoch()) !== epoch)
    throw new StoreFault('the store of people is empty or was rebuilt meanwhile: it cannot tell who is gone', {
      kind: 'passing',
      code: 'NO_EPOCH',
    });
  return { 'redis.i': links, 'redis.c': consents };
}

async function isLinked(
  { graph }: ErasedPeople,
  { environmentId, key, cutoffAt }: { environmentId: string; key: Buffer; cutoffAt: number },
): Promise<boolean> {
  if ((await graph.rootOf(environmentId, key)) === null) return false;
  const members = await graph.membersOf(environmentId, key);
  const own = members.find((member) => member.key.equals(key));
  // One that has a person of whom it is no member is half there.
  return own === undefined || own.linkedAt <= cutoffAt;
}

/** The hash that a receipt bears: SHA-256 of the keys, each once, in the order of their bytes. 32 bytes. */
export function hashClosure(keys: Iterable<Buffer>): Buffer {
  const each = new Map([...keys].map((key) => [key.toString('latin1'), key]));
  return createHash('sha256')
    .update(Buffer.concat([...each.values()].sort(Buffer.compare)))
    .digest();
}

/**
 * What the stores still tell of the keys of one erasure: those of its fences, and those that its request names. A receipt
 * has none. A fence that a later erasure of the same person raised bears the id of that one; the request stays.
 */
export class KnownKeys {
  readonly #keys = new Map<string, Buffer>();

  constructor(request: ErasureRequest | undefined) {
    for (const key of [...(request?.subjectKeys ?? []), ...(request?.memberKeys ?? [])]) this.add(key);
  }

  add(key: Buffer): void {
    this.#keys.set(key.toString('latin1'), key);
  }

  has(key: Buffer): boolean {
    return this.#keys.has(key.toString('latin1'));
  }

  get all(): Buffer[] {
    return [...this.#keys.values()];
  }

  /**
   * Whether these are the keys that the receipt was made of, by its hash; `incomplete` while there are fewer, since then
   * the hash says nothing.
   */
  compare({ closureCount, closureHash }: ErasureReceipt): 'matches' | 'differs' | 'incomplete' {
    if (this.#keys.size < closureCount) return 'incomplete';
    return hashClosure(this.all).equals(closureHash) ? 'matches' : 'differs';
  }
}

/** Offsets that a partition holds: from `start` to before `end`. A reader of the log has it. */
export interface PartitionBounds {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export interface ExpiredLogsOptions {
  readonly records: Pick<ErasureRecords, 'readOpenReceipts' | 'putReceipts'>;
  /** Gives no partition of a topic that is not there. */
  readonly log: { bounds(topic: string): Promise<readonly PartitionBounds[]> };
  /** What the broker's name of a topic has in front of the one in `logEnds`. */
  readonly topicPrefix: string;
  readonly wallClockMs: () => number;
}

export interface ExpiredLogs {
  /** Receipts that say from now on that the log holds nothing. */
  readonly noted: number;
  /** Receipts whose log is not known to have expired. */
  readonly waiting: number;
}

/**
 * Notes in receipts that the log holds nothing of their erasure any more, when both is so:
 * - the time has passed when whatever stood in it has expired (`logExpiresAt`). What came late stands behind the noted
 *   ends: a message of before the cut-off that a gateway was slow to publish, a link that waited for another erasure.
 * - every partition begins at or behind the end that it had when the fences stood. A log that is gone, or ends before that
 *   end, was made anew or has lost its end; which of the two cannot be told, so of it the time alone tells.
 * @throws StoreFault, or a fault of the log
 */
export async function noteExpiredLogs({
  records,
  log,
  topicPrefix,
  wallClockMs,
}: ExpiredLogsOptions): Promise<ExpiredLogs> {
  const receipts = (await records.readOpenReceipts()).filter(({ logExpiredAt }) => logExpiredAt === null);
  const logExpiredAt = wallClockMs();
  const due = receipts.filter(({ logExpiresAt }) => logExpiredAt >= logExpiresAt);
  const logs = new Map<string, ReadonlyMap<number, PartitionBounds>>();
  for (const topic of new Set(due.flatMap(endsOf).map((each) => each.topic))) {
    const bounds = await log.bounds(topicPrefix + topic);
    logs.set(topic, new Map(bounds.map((each) => [each.partition, each])));
  }
  const expired = due.filter((receipt) =>
    endsOf(receipt).every(({ topic, partition, end }) => {
      const bounds = logs.get(topic)?.get(partition);
      return bounds === undefined || bounds.end < end || bounds.start >= end;
    }),
  );
  await records.putReceipts(expired.map((receipt) => ({ ...receipt, logExpiredAt })));
  return { noted: expired.length, waiting: receipts.length - expired.length };
}

function endsOf({ logEnds }: ErasureReceipt): { topic: string; partition: number; end: number }[] {
  return Object.entries(logEnds).map(([place, end]) => {
    const slash = place.lastIndexOf('/');
    return { topic: place.slice(0, slash), partition: Number(place.slice(slash + 1)), end };
  });
}
