import type { ActivityFilters } from '@playline/chain';
import { type ActivityRecord, activityCodec, FRAME_BYTES, toTimestamp } from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';
import type { FeedChain, FeedRig } from './feed-rig.ts';
import type { Findings } from './findings.ts';
import type { Journal } from './traffic.ts';

/** A log record that must be stored as a version of its activity. */
export interface ExpectedVersion {
  readonly chain: string;
  readonly id: string;
  readonly type: string;
  readonly contractAddress: string;
  readonly indexedAt: number;
  readonly partition: number;
  readonly offset: number;
  /** The JSON that a page must contain, without `updated_at`. */
  readonly shown: Readonly<Record<string, unknown>>;
}

export interface TimedVersion extends ExpectedVersion {
  readonly us: number;
}

/** The expected outcome of every record, derived only from the committed records in log order. */
export interface ExpectedOutcomes {
  readonly accepted: readonly ExpectedVersion[];
  /** `partition offset` of each record that must be a dead letter. */
  readonly refused: ReadonlySet<string>;
  readonly numbers: ReadonlySet<number>;
}

const hex = (bytes: Buffer) => `0x${bytes.toString('hex')}`;
const uuid = (bytes: Buffer) => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

export async function readLog({ log, activities, chains }: FeedRig): Promise<ExpectedOutcomes> {
  const decode = activityCodec.decoderOf(activityCodec.schema);
  const accepted: ExpectedVersion[] = [];
  const refused = new Set<string>();
  const numbers = new Set<number>();
  const first = new Map<string, ExpectedVersion>();
  const byName = new Map(chains.map((chain) => [chain.name, chain]));
  for (const record of await log.read(activities)) {
    if (record.value === null) continue;
    const activity = decode(record.value.subarray(FRAME_BYTES));
    numbers.add(Number((JSON.parse(activity.details) as { amount: string }).amount));
    const chain = byName.get(activity.chain)!;
    const version = toVersion(record, activity, chain);
    const before = first.get(version.id) ?? version;
    const isSame = (['type', 'contractAddress', 'indexedAt'] as const).every((name) => before[name] === version[name]);
    if (isSame && chain.partition === record.partition) {
      first.set(version.id, before);
      accepted.push(version);
    } else refused.add(`${record.partition} ${record.offset}`);
  }
  return { accepted, refused, numbers };
}

function toVersion({ partition, offset }: StreamRecord, record: ActivityRecord, chain: FeedChain): ExpectedVersion {
  const { blockchainMetadata: metadata } = record;
  const shown = {
    id: uuid(record.id),
    chain: { id: chain.id, name: chain.name },
    type: record.type,
    details: JSON.parse(record.details),
    indexed_at: toTimestamp(record.indexedAt),
    blockchain_metadata: metadata && {
      transaction_hash: hex(metadata.transactionHash),
      block_number: metadata.blockNumber,
      transaction_index: metadata.transactionIndex,
      log_index: metadata.logIndex,
    },
  };
  const { type, indexedAt } = record;
  const contractAddress = hex(record.contractAddress);
  return { chain: chain.name, id: shown.id, type, contractAddress, indexedAt, partition, offset, shown };
}

/** Checks the log itself, without which the other checks would prove nothing. */
export function checkJournal({ numbers }: ExpectedOutcomes, journal: Journal): void {
  const lost = [...journal.acknowledged].filter((number) => !numbers.has(number));
  const committedAborts = [...journal.aborted].filter((number) => numbers.has(number));
  if (lost.length + committedAborts.length > 0)
    throw new Error(`the log lost versions ${lost} and contains aborted versions ${committedAborts}`);
}

/** Finds each version's row. @returns each chain's versions in ascending order */
export async function addTimes(
  rig: FeedRig,
  { accepted, refused }: ExpectedOutcomes,
  findings: Findings,
): Promise<Map<string, TimedVersion[]>> {
  const report = (text: string) => findings.add('one row per record', text);
  const rows = Map.groupBy(await rig.versions(), ({ partition, offset }) => `${partition} ${offset}`);
  const timed: TimedVersion[] = [];
  const lastUs = new Map<number, number>();
  for (const version of accepted) {
    const name = `${version.partition} ${version.offset}`;
    const [row, ...others] = rows.get(name) ?? [];
    rows.delete(name);
    if (row === undefined || others.length > 0 || row.id !== version.id || row.chain !== version.chain)
      report(`record ${name} (${version.id}) is stored as ${JSON.stringify([row, ...others])}`);
    if (row === undefined) continue;
    if (row.us <= (lastUs.get(row.partition) ?? 0))
      report(`record ${name} is at ${row.us}, which is not above the previous record`);
    lastUs.set(row.partition, row.us);
    timed.push({ ...version, us: row.us });
  }
  for (const [name, found] of rows) report(`unexpected row for ${name}: ${JSON.stringify(found)}`);
  const deadLetters = new Set(
    (await rig.log.read(`${rig.activities}.dead`)).map(
      ({ headers }) => `${headers['original-partition']} ${headers['original-offset']}`,
    ),
  );
  for (const name of refused) if (!deadLetters.has(name)) report(`no dead letter for ${name}`);
  for (const name of deadLetters) if (!refused.has(name)) report(`unexpected dead letter for ${name}`);
  return Map.groupBy(
    timed.toSorted((a, b) => a.us - b.us),
    ({ chain }) => chain,
  );
}

export function isMatch(version: ExpectedVersion, filters: ActivityFilters): boolean {
  const { type, contractAddress, fromIndexedAt, toIndexedAt } = filters;
  return (
    (type ?? version.type) === version.type &&
    (contractAddress ?? version.contractAddress) === version.contractAddress &&
    (fromIndexedAt ?? 0) <= version.indexedAt &&
    version.indexedAt <= (toIndexedAt ?? Number.POSITIVE_INFINITY)
  );
}

export function lastVersions(versions: readonly TimedVersion[], upTo: number): Map<string, TimedVersion> {
  const last = new Map<string, TimedVersion>();
  for (const version of versions) {
    if (version.us > upTo) break;
    last.set(version.id, version);
  }
  return last;
}
