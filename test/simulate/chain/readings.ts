import { comparePositions, type Position } from '@playline/chain';
import { ACTIVITY_TYPES, parseTimestampMicros, toTimestamp } from '@playline/contracts';
import { pauseOrThrow } from '@playline/stores';
import type { Activity, ReadHistory } from '../../../services/operator/src/replicate/history.ts';
import type { Run } from '../run.ts';
import { type Contract, contractAddressOf, type MadeActivity } from './activities.ts';
import {
  type ChainDifferenceKind,
  type ChainDifferences,
  createOrderCheck,
  type Ledger,
  type Replica,
  sequenceOf,
  toPosition,
} from './replica.ts';

export interface FilteredWalk {
  readonly name: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly passes: (activity: MadeActivity) => boolean;
}

export interface WalkModel {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
}

/** Ranks of contracts to filter by: the two most active, a middle one, and the least active. */
const ranksOf = (count: number) => [...new Set([0, 1, Math.floor(count / 2), count - 1])];

/**
 * Filters to try: each type, contracts of any activity, an unknown contract, and the middle of the times. All start at
 * the run's first activity, so that a long history before it costs no calls.
 */
export function planWalks(ledger: Ledger, contracts: readonly Contract[]): FilteredWalk[] {
  const times = [...ledger.entries()]
    .map(([, { activity }]) => parseTimestampMicros(activity.indexed_at))
    .toSorted((one, other) => one - other);
  const [first, last] = [times.at(0), times.at(-1)];
  if (first === undefined || last === undefined) return [];
  const from_indexed_at = toTimestamp(first);
  const bounds = [first + Math.floor((last - first) / 4), first + Math.floor(((last - first) * 3) / 4)] as const;
  const isWithin = ({ indexed_at }: MadeActivity) => {
    const us = parseTimestampMicros(indexed_at);
    return us >= bounds[0] && us <= bounds[1];
  };
  const ofContract = (name: string, contract_address: string): FilteredWalk => ({
    name,
    filters: { from_indexed_at, contract_address },
    passes: (activity) => contractAddressOf(activity) === contract_address,
  });
  return [
    ...ACTIVITY_TYPES.map((type) => ({
      name: `type ${type}`,
      filters: { from_indexed_at, activity_type: type },
      passes: (activity: MadeActivity) => activity.type === type,
    })),
    ...ranksOf(contracts.length).map((rank) => ofContract(`contract ${rank + 1} by heat`, contracts[rank]!.address)),
    ofContract('a contract without activities', `0x${'0'.repeat(39)}1`),
    {
      name: 'times of the middle',
      filters: { from_indexed_at: toTimestamp(bounds[0]), to_indexed_at: toTimestamp(bounds[1]) },
      passes: isWithin,
    },
  ];
}

/** Reads pages up to the end of a history. @yields each page, the last one without activities */
export async function* readForwards(readHistory: ReadHistory, from: string | null, stop: AbortSignal) {
  for (let cursor = from; ; ) {
    const page = await readHistory(cursor, stop);
    const isEnd = page.activities.length === 0 && page.nextCursor === cursor;
    cursor = page.nextCursor;
    yield { ...page, isEnd };
    if (isEnd) return;
  }
}

/** Compares what one reading shows of the run with what the replica has seen last. */
export function createWalkCheck(
  name: string,
  kind: Extract<ChainDifferenceKind, 'filter' | 'backwards'>,
  { run, ledger, differences }: WalkModel,
) {
  const checkOrder = createOrderCheck(name, { differences, isBackwards: kind === 'backwards' });
  const seen = new Set<number>();
  return {
    see: (activity: Activity, passes: FilteredWalk['passes']) => {
      const position = toPosition(activity);
      const sequence = sequenceOf(run, activity.id);
      if (!checkOrder(position) || sequence === null) return;
      const entry = ledger.find(sequence);
      if (entry === null || !passes(entry.activity))
        differences.add(kind, `${name}: ${activity.id} does not belong there`);
      else if (entry.position === null || comparePositions(entry.position, position) !== 0)
        differences.add(
          kind,
          `${name}: ${activity.id} is at ${describePosition(position)}, and forwards at ${describePosition(entry.position)}`,
        );
      seen.add(sequence);
    },
    end: (passes: FilteredWalk['passes']): number => {
      let expected = 0;
      for (const [sequence, { activity, position }] of ledger.entries()) {
        if (position === null || !passes(activity)) continue;
        expected++;
        if (!seen.has(sequence)) differences.add(kind, `${name}: ${activity.id} is missing`);
      }
      return expected;
    },
  };
}

const describePosition = (position: Position | null) =>
  position === null ? 'nowhere' : toTimestamp(position.updatedAt);

/** Reads a filtered history to its end. @returns how many activities the model has for the filter */
export async function walkFiltered(
  { name, passes }: FilteredWalk,
  { readHistory, stop }: { readHistory: ReadHistory; stop: AbortSignal },
  model: WalkModel,
): Promise<number> {
  const check = createWalkCheck(name, 'filter', model);
  for await (const { activities } of readForwards(readHistory, null, stop))
    for (const activity of activities) check.see(activity, passes);
  return check.end(passes);
}

/** Reads back from the end to the position before the run. @returns how many activities the model has */
export async function walkBackwards(
  walk: { readHistory: ReadHistory; from: string; until: Position | null; stop: AbortSignal },
  model: WalkModel,
): Promise<number> {
  const { readHistory, from, until, stop } = walk;
  const check = createWalkCheck('backwards', 'backwards', model);
  for (let cursor = from; ; ) {
    const { activities, previousCursor } = await readHistory(cursor, stop);
    for (const activity of activities.toReversed()) check.see(activity, () => true);
    const first = activities.at(0);
    const isDone = until !== null && first !== undefined && comparePositions(toPosition(first), until) <= 0;
    if (isDone || (first === undefined && previousCursor === cursor)) break;
    cursor = previousCursor;
  }
  return check.end(() => true);
}

/** The end of the history before anything of the run was published. */
export interface Beginning {
  readonly cursor: string;
  readonly last: Position | null;
  readonly versions: number;
}

export async function findBeginning(
  readHistory: ReadHistory,
  stop: AbortSignal,
  onProgress: (line: string) => void,
): Promise<Beginning> {
  let [versions, last, cursor]: [number, Position | null, string] = [0, null, ''];
  for await (const { activities, nextCursor } of readForwards(readHistory, null, stop)) {
    versions += activities.length;
    const end = activities.at(-1);
    if (end !== undefined) last = toPosition(end);
    cursor = nextCursor;
    if (versions > 0) onProgress(`the history had ${versions} versions before the run`);
  }
  return { cursor, last, versions };
}

export interface FollowOptions {
  readonly readHistory: ReadHistory;
  readonly replica: Replica;
  readonly ledger: Ledger;
  readonly isSending: () => boolean;
  readonly idleMaxMs: number;
  readonly onProgress: (line: string) => void;
  readonly stop: AbortSignal;
}

/** Twice a second: 600 of the 1,500 calls that a client address may make in five minutes. */
const POLL_MS = 500;

/**
 * Follows the history until everything acknowledged is served, or until nothing new was served for `idleMaxMs`.
 * @returns `previous_cursor` of the end
 */
export async function follow(from: string, options: FollowOptions): Promise<string> {
  const { readHistory, replica, ledger, isSending, idleMaxMs, onProgress, stop } = options;
  let cursor = from;
  let changedAt = performance.now();
  for (let quietEnds = 0; ; ) {
    const isLast = !isSending();
    const page = await readHistory(cursor, stop);
    const now = performance.now();
    for (const activity of page.activities) replica.apply(activity, now);
    const isEnd = page.activities.length === 0 && page.nextCursor === cursor;
    if (!isEnd || !isLast) changedAt = now;
    quietEnds = isEnd && isLast && ledger.pending === 0 ? quietEnds + 1 : 0;
    // Reads the end twice, since duplicates would arrive later.
    if (quietEnds > 1 || now - changedAt > idleMaxMs) return page.previousCursor;
    cursor = page.nextCursor;
    if (!isEnd) continue;
    if (isLast) onProgress(`${ledger.pending} activities are not served yet`);
    await pauseOrThrow(POLL_MS, stop);
  }
}
