import { comparePositions, type Position } from '@playline/chain';
import { ACTIVITY_TYPES, isUuidText, parseTimestampMicros, toTimestamp } from '@playline/contracts';
import { pauseOrThrow } from '@playline/stores';
import type { Activity, ReadHistory } from '../../../services/operator/src/replicate/history.ts';
import { type Differences, describeDifferences } from '../report.ts';
import { messageIdPrefix, type Run, sequenceOfId, toMessageId } from '../run.ts';
import { type Contract, contractAddressOf, type GeneratedActivity } from './generator.ts';

/** Differences that a chain simulation can find. Any difference fails the run. */
export type ChainDifferenceKind =
  | 'import' // unexpected numbers of published, superseded or refused lines
  | 'missing' // an activity is not served in its last acknowledged version
  | 'doubled' // a version is served at two positions, or a position is served twice
  | 'uninvited' // a served line was refused, superseded before publishing, or never sent
  | 'member' // an activity's field differs from the model
  | 'order' // positions are not ascending, or an earlier version follows a later version
  | 'backwards' // reading backwards differs from reading forwards
  | 'filter' // a filtered history differs from the model
  | 'token'; // a token differs from the model, or its ETag is wrong

export type ChainDifferences = Differences<ChainDifferenceKind>;

export interface Entry {
  /** Versions that were or may have been published, oldest first, as JSON without the chain's id. */
  readonly versions: { readonly text: string; acknowledgedAtMs: number | null }[];
  readonly activity: GeneratedActivity;
  /** True if an import with an unknown result was retried, in which case a version may be served twice. */
  mayRepeat: boolean;
  served: number;
  position: Position | null;
}

export type Ledger = ReturnType<typeof createLedger>;

/** Returns the index of the last acknowledged version; -1 if there is none. */
const lastAcknowledged = ({ versions }: Entry): number =>
  versions.findLastIndex(({ acknowledgedAtMs }) => acknowledgedAtMs !== null);

const isPending = (entry: Entry) => entry.served < lastAcknowledged(entry);

export function checkServed(ledger: Ledger, differences: ChainDifferences): void {
  for (const [, entry] of ledger.entries()) {
    const { activity, served } = entry;
    const last = `is served in version ${served + 1} of ${lastAcknowledged(entry) + 1}`;
    if (isPending(entry)) differences.add('missing', `${activity.id} ${served === -1 ? 'is not served' : last}`);
  }
}

/** Creates the model of the history: the versions that must be served, by sequence number. */
export function createLedger() {
  const entries = new Map<number, Entry>();
  let [pending, acknowledged, published] = [0, 0, 0];
  const change = (sequence: number, apply: (entry: Entry) => unknown) => {
    const entry = entries.get(sequence);
    if (entry === undefined) throw new RangeError('unknown sequence number');
    const wasPending = isPending(entry);
    apply(entry);
    pending += Number(isPending(entry)) - Number(wasPending);
  };
  return {
    /** Records a version before it is published. @returns its index */
    publish: (sequence: number, activity: GeneratedActivity): number => {
      published++;
      const version = { text: JSON.stringify(activity), acknowledgedAtMs: null };
      const entry = entries.get(sequence);
      if (entry !== undefined) return entry.versions.push(version) - 1;
      entries.set(sequence, { versions: [version], activity, mayRepeat: false, served: -1, position: null });
      return 0;
    },
    allowRepeat: (sequence: number): void => change(sequence, (entry) => Object.assign(entry, { mayRepeat: true })),
    acknowledge: (sequence: number, version: number, atMs: number): void => {
      acknowledged++;
      change(sequence, ({ versions }) => Object.assign(versions[version]!, { acknowledgedAtMs: atMs }));
    },
    /** Records that a version was served. @returns the time of the acknowledgement; null if unknown or served before */
    serve: (sequence: number, version: number, position: Position): number | null => {
      const before = entries.get(sequence)?.served;
      change(sequence, (entry) => Object.assign(entry, { served: version, position }));
      return before === version ? null : entries.get(sequence)!.versions[version]!.acknowledgedAtMs;
    },
    find: (sequence: number): Entry | null => entries.get(sequence) ?? null,
    entries: () => entries.entries(),
    /** The number of activities whose last acknowledged version has not been served. */
    get pending() {
      return pending;
    },
    get acknowledged() {
      return acknowledged;
    },
    get unknown() {
      return published - acknowledged;
    },
  };
}

function toPosition({ id, updated_at }: Activity): Position {
  return { id, updatedAt: parseTimestampMicros(updated_at) };
}

/** Returns an activity's sequence number; null for an activity that the run did not create. */
function sequenceOf(run: Run, id: string): number | null {
  if (!isUuidText(id) || !id.startsWith(messageIdPrefix(run))) return null;
  const sequence = sequenceOfId(id);
  return toMessageId(run, sequence) === id ? sequence : null;
}

// Returns a function that reports a position that is out of order and returns false for it.
function createOrderCheck(
  name: string,
  { differences, isBackwards = false }: { differences: ChainDifferences; isBackwards?: boolean },
): (position: Position) => boolean {
  let before: Position | null = null;
  const describePosition = ({ id, updatedAt }: Position) => `${id} at ${updatedAt}`;
  return (position) => {
    const order = before === null ? 1 : comparePositions(position, before) * (isBackwards ? -1 : 1);
    if (order === 0) differences.add('doubled', `${name}: ${describePosition(position)} is served twice`);
    if (Number.isNaN(order) || order < 0)
      differences.add('order', `${name}: ${describePosition(position)} is served after ${describePosition(before!)}`);
    // One position that is out of order must not affect the check of later positions.
    if (order > 0) before = position;
    return order > 0;
  };
}

interface ReplicaOptions {
  readonly run: Run;
  readonly chain: { readonly name: string; readonly id: string | null };
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
  /** Called when a version is first served, with the milliseconds since the acknowledgement. */
  readonly onServed: (ms: number) => void;
}

type Replica = ReturnType<typeof createReplica>;

export function createReplica({ run, chain, ledger, differences, onServed }: ReplicaOptions) {
  const checkOrder = createOrderCheck('forwards', { differences });
  let strangers = 0;
  const findVersion = (entry: Entry, activity: Activity): number => {
    const differencesOf = (index: number) => describeDifferences(toExpected(entry, index, activity), activity);
    const isShown = (_: unknown, index: number) => differencesOf(index).length === 0;
    const { versions, served } = entry;
    const version = versions.findLastIndex(isShown);
    const { id } = activity;
    if (version === -1)
      for (const text of differencesOf(versions.length - 1)) differences.add('member', `${id} ${text}`);
    else if (version < served)
      differences.add('order', `${id}: version ${version + 1} is served after version ${served + 1}`);
    else if (version === served && !entry.mayRepeat)
      differences.add('doubled', `${id}: version ${version + 1} is served again, at ${activity.updated_at}`);
    // An activity with wrong fields must not also be reported as missing.
    return version === -1 ? versions.length - 1 : Math.max(version, served);
  };
  const toExpected = ({ versions }: Entry, index: number, { updated_at, chain: shown }: Activity): object => {
    // If the chain's id is unknown, any id is accepted.
    const id = chain.id ?? (shown as { id?: unknown } | null)?.id;
    return { ...(JSON.parse(versions[index]!.text) as object), updated_at, chain: { id, name: chain.name } };
  };
  return {
    apply: (activity: Activity, atMs: number): void => {
      const position = toPosition(activity);
      const isInOrder = checkOrder(position);
      const sequence = sequenceOf(run, activity.id);
      if (sequence === null) return void strangers++;
      const entry = ledger.find(sequence);
      if (entry === null)
        return void differences.add('uninvited', `${activity.id} is served, but was refused or never sent`);
      if (!isInOrder) return;
      const acknowledgedAtMs = ledger.serve(sequence, findVersion(entry, activity), position);
      if (acknowledgedAtMs !== null) onServed(Math.max(0, atMs - acknowledgedAtMs));
    },
    get strangers() {
      return strangers;
    },
  };
}

export interface FilteredWalk {
  readonly name: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly matches: (activity: GeneratedActivity) => boolean;
}

interface WalkModel {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
}

/** Returns the ranks of contracts to filter by: the two most active, the median and the least active contract. */
const ranksOf = (count: number) => [...new Set([0, 1, Math.floor(count / 2), count - 1])];

// Plans filtered reads: each type, contracts by rank, an unknown contract, and the middle half of the time range. Reads
// start at the run's first activity, so that no calls are spent on earlier history.
export function planWalks(ledger: Ledger, contracts: readonly Contract[]): FilteredWalk[] {
  const times = [...ledger.entries()]
    .map(([, { activity }]) => parseTimestampMicros(activity.indexed_at))
    .toSorted((a, b) => a - b);
  const [first, last] = [times.at(0), times.at(-1)];
  if (first === undefined || last === undefined) return [];
  const from_indexed_at = toTimestamp(first);
  const bounds = [first + Math.floor((last - first) / 4), first + Math.floor(((last - first) * 3) / 4)] as const;
  const isWithin = ({ indexed_at }: GeneratedActivity) => {
    const us = parseTimestampMicros(indexed_at);
    return us >= bounds[0] && us <= bounds[1];
  };
  const ofContract = (name: string, contract_address: string): FilteredWalk => ({
    name,
    filters: { from_indexed_at, contract_address },
    matches: (activity) => contractAddressOf(activity) === contract_address,
  });
  return [
    ...ACTIVITY_TYPES.map((type) => ({
      name: `type ${type}`,
      filters: { from_indexed_at, activity_type: type },
      matches: (activity: GeneratedActivity) => activity.type === type,
    })),
    ...ranksOf(contracts.length).map((rank) =>
      ofContract(`contract ${rank + 1} by activity`, contracts[rank]!.address),
    ),
    ofContract('a contract without activities', `0x${'0'.repeat(39)}1`),
    {
      name: 'middle half of the time range',
      filters: { from_indexed_at: toTimestamp(bounds[0]), to_indexed_at: toTimestamp(bounds[1]) },
      matches: isWithin,
    },
  ];
}

/** Reads pages until the end of a history. @yields each page, including the empty last page */
export async function* readForwards(readHistory: ReadHistory, from: string | null, stop: AbortSignal) {
  for (let cursor = from; ; ) {
    const page = await readHistory(cursor, stop);
    const isEnd = page.activities.length === 0 && page.nextCursor === cursor;
    cursor = page.nextCursor;
    yield { ...page, isEnd };
    if (isEnd) return;
  }
}

function createWalkCheck(
  name: string,
  kind: Extract<ChainDifferenceKind, 'filter' | 'backwards'>,
  { run, ledger, differences }: WalkModel,
) {
  const checkOrder = createOrderCheck(name, { differences, isBackwards: kind === 'backwards' });
  const seen = new Set<number>();
  return {
    visit: (activity: Activity, matches: FilteredWalk['matches']) => {
      const position = toPosition(activity);
      const sequence = sequenceOf(run, activity.id);
      if (!checkOrder(position) || sequence === null) return;
      const entry = ledger.find(sequence);
      if (entry === null || !matches(entry.activity)) differences.add(kind, `${name}: ${activity.id} is unexpected`);
      else if (entry.position === null || comparePositions(entry.position, position) !== 0)
        differences.add(
          kind,
          `${name}: ${activity.id} is at ${describePosition(position)} instead of ${describePosition(entry.position)}`,
        );
      seen.add(sequence);
    },
    end: (matches: FilteredWalk['matches']): number => {
      let expected = 0;
      for (const [sequence, { activity, position }] of ledger.entries()) {
        if (position === null || !matches(activity)) continue;
        expected++;
        if (!seen.has(sequence)) differences.add(kind, `${name}: ${activity.id} is missing`);
      }
      return expected;
    },
  };
}

const describePosition = (position: Position | null) =>
  position === null ? 'no position' : toTimestamp(position.updatedAt);

/** Reads a filtered history to the end. @returns the number of matching activities in the model */
export async function walkFiltered(
  { name, matches }: FilteredWalk,
  { readHistory, stop }: { readHistory: ReadHistory; stop: AbortSignal },
  model: WalkModel,
): Promise<number> {
  const check = createWalkCheck(name, 'filter', model);
  for await (const { activities } of readForwards(readHistory, null, stop))
    for (const activity of activities) check.visit(activity, matches);
  return check.end(matches);
}

/** Reads backwards from the end to the start of the run. @returns the number of activities in the model */
export async function walkBackwards(
  walk: { readHistory: ReadHistory; from: string; until: Position | null; stop: AbortSignal },
  model: WalkModel,
): Promise<number> {
  const { readHistory, from, until, stop } = walk;
  const check = createWalkCheck('backwards', 'backwards', model);
  for (let cursor = from; ; ) {
    const { activities, previousCursor } = await readHistory(cursor, stop);
    for (const activity of activities.toReversed()) check.visit(activity, () => true);
    const first = activities.at(0);
    const isDone = until !== null && first !== undefined && comparePositions(toPosition(first), until) <= 0;
    if (isDone || (first === undefined && previousCursor === cursor)) break;
    cursor = previousCursor;
  }
  return check.end(() => true);
}

/** The end of the history before the run started. */
export type HistoryStart = Awaited<ReturnType<typeof findHistoryStart>>;

export async function findHistoryStart(read: ReadHistory, stop: AbortSignal, onProgress: (line: string) => void) {
  let [versions, last, cursor]: [number, Position | null, string] = [0, null, ''];
  for await (const { activities, nextCursor } of readForwards(read, null, stop)) {
    versions += activities.length;
    const end = activities.at(-1);
    if (end !== undefined) last = toPosition(end);
    cursor = nextCursor;
    if (versions > 0) onProgress(`the history had ${versions} versions before the run`);
  }
  return { cursor, last, versions };
}

interface FollowOptions {
  readonly readHistory: ReadHistory;
  readonly replica: Replica;
  readonly ledger: Ledger;
  readonly isSending: () => boolean;
  readonly idleMaxMs: number;
  readonly onProgress: (line: string) => void;
  readonly stop: AbortSignal;
}

/** At two calls per second, polling uses 600 of the 1,500 calls that an address may make in five minutes. */
const POLL_MS = 500;

/**
 * Follows the history until all acknowledged versions are served, or until nothing new is served for `idleMaxMs`.
 * @returns the last page's `previous_cursor`
 */
export async function follow(from: string, options: FollowOptions): Promise<string> {
  const { readHistory, replica, ledger, isSending, idleMaxMs, onProgress, stop } = options;
  let cursor = from;
  let changedAt = performance.now();
  for (let completeReads = 0; ; ) {
    const isLast = !isSending();
    const page = await readHistory(cursor, stop);
    const now = performance.now();
    for (const activity of page.activities) replica.apply(activity, now);
    const isEnd = page.activities.length === 0 && page.nextCursor === cursor;
    if (!isEnd || !isLast) changedAt = now;
    completeReads = isEnd && isLast && ledger.pending === 0 ? completeReads + 1 : 0;
    // Reads the end of the history twice, because duplicates would arrive late.
    if (completeReads > 1 || now - changedAt > idleMaxMs) return page.previousCursor;
    cursor = page.nextCursor;
    if (!isEnd) continue;
    if (isLast) onProgress(`${ledger.pending} activities are not served yet`);
    await pauseOrThrow(POLL_MS, stop);
  }
}
