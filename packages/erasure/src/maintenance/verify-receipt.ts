import { createHash } from 'node:crypto';
import { StoreFault } from '@playline/stores';
import type { ErasureReceipt, ErasureRecords, ErasureRequest } from '../records.ts';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { ERASED_TABLES } from '../stores/tables.ts';
import { type TargetBatchesOptions, withTargets } from './batches.ts';

/** The subset of `People` that a verification reads. */
export interface ErasedPeople {
  /** Null while Redis is incomplete, in which case everyone would appear to be erased. */
  readEpoch(environmentId?: string): Promise<string | null>;
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
  /** If absent, Redis is not searched. */
  readonly people?: ErasedPeople;
  /** Whether files are searched for deleted rows. */
  readonly checkDisk: boolean;
}

/** Counts by store, such as `clickhouse.events`. Zero for searched stores that contain no data. */
export type Counts = Readonly<Record<string, number>>;

export interface Verification {
  readonly receipt: ErasureReceipt;
  /** Number of searched identities, at most `receipt.closureCount`. */
  readonly identities: number;
  /** Whether the receipt's hash matches the searched keys; `incomplete` if some keys are no longer known. */
  readonly hash: 'matches' | 'differs' | 'incomplete';
  /** Ids of later erasures that replaced fences of this erasure, so that keys may be missing. */
  readonly laterErasures: readonly Buffer[];
  /** Rows, links and consents up to the cut-off. */
  readonly remaining: Counts;
  /** Rows in files, including deleted rows; null if not searched. */
  readonly onDisk: Counts | null;
}

/** Whether all keys were searched and no data was found. Files matter only if `physicallyErasedAt` is set. */
export function isVerified({ receipt, hash, remaining, onDisk }: Verification): boolean {
  const isEmpty = (counts: Counts) => Object.values(counts).every((count) => count === 0);
  const isDiskChecked = receipt.physicallyErasedAt !== null && onDisk !== null;
  return hash === 'matches' && isEmpty(remaining) && (!isDiskChecked || isEmpty(onDisk));
}

/**
 * Searches for a receipt's data up to the cut-off. The keys come from the request, from the erasure's fences and, if
 * the hash matches, from fences that a later erasure replaced.
 * @returns null if the erasure has no receipt
 * @throws StoreFault, including when no key is known; a people store fault
 */
export async function verifyReceipt(options: VerificationOptions, erasureId: Buffer): Promise<Verification | null> {
  const { records, rows, people } = options;
  const receipt = await records.readReceipt(erasureId);
  if (receipt === null) return null;
  const { environmentId, cutoffAt: cutoffMs } = receipt;
  const { known, laterErasures } = await readKeys(records, receipt);
  const keys = known.all;
  if (keys.length === 0)
    throw new StoreFault('The keys of this erasure are no longer stored, so the receipt cannot be verified', {
      kind: 'permanent',
      code: 'NO_TARGETS',
    });
  return withTargets(options, async (batches) => {
    for (const key of keys) await batches.add({ environmentId, key, cutoffMs });
    await batches.flush();
    const count = async (find: (batch: Buffer) => Promise<FoundRows[]>) => {
      const found: FoundRows[] = [];
      for (const batch of batches.ids) for (const each of await find(batch)) found.push(each);
      return toRowCounts(found);
    };
    const rowCounts = await count(rows.findSurvivors);
    const peopleCounts = people === undefined ? {} : await countPeople(people, receipt, keys);
    return {
      receipt,
      identities: keys.length,
      hash: known.compare(receipt),
      laterErasures,
      remaining: { ...rowCounts, ...peopleCounts },
      onDisk: options.checkDisk ? await count(rows.findOnDisk) : null,
    };
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
  // Requests for the same person in one batch have the same closure, whose fences have the id of only one request.
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

/** Counts identities that have a link or consent up to the cut-off. */
async function countPeople(people: ErasedPeople, receipt: ErasureReceipt, keys: readonly Buffer[]): Promise<Counts> {
  const { environmentId, cutoffAt } = receipt;
  const epoch = await people.readEpoch(environmentId);
  let links = 0;
  for (const key of keys) {
    if ((await people.graph.rootOf(environmentId, key)) === null) continue;
    const members = await people.graph.membersOf(environmentId, key);
    const own = members.find((member) => member.key.equals(key));
    // An identity that is in the index but not a member of its person was not completely removed.
    if (own === undefined || own.linkedAt <= cutoffAt) links++;
  }
  const stored = await people.consents.readStored(environmentId, keys);
  const consents = stored.filter(({ receivedAt }) => receivedAt <= cutoffAt).length;
  if (epoch === null || (await people.readEpoch(environmentId)) !== epoch)
    throw new StoreFault('Redis is empty or was rebuilt during the search. If it is empty, rebuild it; then retry', {
      kind: 'transient',
      code: 'NO_EPOCH',
    });
  return { 'redis.i': links, 'redis.c': consents };
}

/** SHA-256 (32 bytes) of the distinct keys, sorted by bytes. */
export function hashClosure(keys: Iterable<Buffer>): Buffer {
  const each = new Map([...keys].map((key) => [key.toString('latin1'), key]));
  return createHash('sha256')
    .update(Buffer.concat([...each.values()].sort(Buffer.compare)))
    .digest();
}

/** The known keys of one erasure: keys in its request and in fences that still have its id. */
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

  /** Compares the keys with the receipt's hash; `incomplete` if keys are missing. */
  compare({ closureCount, closureHash }: ErasureReceipt): Verification['hash'] {
    if (this.#keys.size < closureCount) return 'incomplete';
    return hashClosure(this.all).equals(closureHash) ? 'matches' : 'differs';
  }
}

/** Offsets of a partition, from `start` (inclusive) to `end` (exclusive). */
export interface PartitionBounds {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

interface ExpiredLogsOptions {
  readonly records: Pick<ErasureRecords, 'readOpenReceipts' | 'putReceipts'>;
  /** Returns no partitions if the topic is missing. */
  readonly log: { bounds(topic: string): Promise<readonly PartitionBounds[]> };
  readonly topicPrefix: string;
  readonly wallClockMs: () => number;
}

/**
 * Sets `logExpiredAt` on receipts once `logExpiresAt` has passed, which accounts for late records, and every partition
 * starts at or after its offset in `logEnds`. For a partition that is missing or ends earlier, only the time is
 * checked.
 * @returns the numbers of receipts whose log has expired (`recorded`) and has not expired (`waiting`)
 */
export async function recordLogExpiry({ records, log, topicPrefix, wallClockMs }: ExpiredLogsOptions) {
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
  return { recorded: expired.length, waiting: receipts.length - expired.length };
}

function endsOf({ logEnds }: ErasureReceipt): { topic: string; partition: number; end: number }[] {
  return Object.entries(logEnds).map(([name, end]) => {
    const slash = name.lastIndexOf('/');
    return { topic: name.slice(0, slash), partition: Number(name.slice(slash + 1)), end };
  });
}
