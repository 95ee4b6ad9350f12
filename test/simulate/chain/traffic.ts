import { createDeck } from '@playline/testkit/random';
import type { Run } from '../run.ts';
import { createGenerator, type GeneratedActivity, type Generator, type SequencedActivity } from './generator.ts';

interface BrokenLine {
  readonly text: string;
  readonly refusal: readonly string[];
}

type Damage = (activity: GeneratedActivity) => BrokenLine;

function damaged(activity: GeneratedActivity, change: object, ...refusal: string[]): BrokenLine {
  return { text: JSON.stringify({ ...activity, ...change }), refusal };
}

const personOf = ({ details }: GeneratedActivity) => (details.to === undefined ? 'from' : 'to');
/** Changes an activity's asset. Reduces a bundle to one asset, because mixed contracts would be an additional error. */
const withAsset = ({ details }: GeneratedActivity, change: object) => {
  const { asset } = details;
  const changed = Array.isArray(asset) ? [{ ...asset[0], ...change }] : { ...asset, ...change };
  return { details: { ...details, asset: changed } };
};
const assetPath = ({ details }: GeneratedActivity) =>
  Array.isArray(details.asset) ? 'details.asset.0' : 'details.asset';
const POSITION = {
  transaction_hash: `0x${'5'.repeat(64)}`,
  block_number: '1',
  transaction_index: '0',
  log_index: null,
};

const DAMAGES: readonly Damage[] = [
  () => ({ text: '{"half":', refusal: ['is not valid JSON'] }),
  () => ({ text: '[]', refusal: ['message'] }),
  (activity) => damaged(activity, { id: activity.id.slice(1) }, 'id'),
  (activity) => damaged(activity, { id: undefined }, 'id'),
  (activity) => damaged(activity, { chain: { id: 'eip155:1', name: activity.chain } }, 'chain'),
  (activity) => damaged(activity, { chain: 'Some Chain', indexed_at: 'yesterday' }, 'chain', 'indexed_at'),
  (activity) => damaged(activity, { type: 'gift' }, 'type'),
  (activity) => damaged(activity, { indexed_at: '2026-02-30T00:00:00Z' }, 'indexed_at'),
  (activity) => damaged(activity, { details: null }, 'details'),
  (activity) => damaged(activity, { blockchain_metadata: undefined }, 'blockchain_metadata'),
  (activity) =>
    damaged(
      activity,
      { blockchain_metadata: { ...POSITION, block_number: '007', log_index: '-1' } },
      'blockchain_metadata.block_number',
      'blockchain_metadata.log_index',
    ),
  (activity) => {
    const name = personOf(activity);
    return damaged(activity, { details: { ...activity.details, [name]: '0x12' } }, `details.${name}`);
  },
  (activity) =>
    damaged(activity, withAsset(activity, { contract_type: 'ERC404' }), `${assetPath(activity)}.contract_type`),
  (activity) =>
    damaged(activity, withAsset(activity, { contract_address: '0x' }), `${assetPath(activity)}.contract_address`),
];

export interface TrafficLine {
  readonly text: string;
  /** The activity's sequence number. A broken line has a separate number, whose activity must never be served. */
  readonly sequence: number;
  /** The activity that must be served; null if the line must be refused. */
  readonly activity: GeneratedActivity | null;
  /** Prefixes of the expected errors; empty if the line is valid. */
  readonly refusal: readonly string[];
}

export type Traffic = ReturnType<typeof createTraffic>;

export interface TrafficOptions {
  readonly run: Run;
  readonly chain: string;
  /** Number of activities, not counting later versions and broken lines. */
  readonly activitiesMax: number;
  readonly brokenFraction: number;
}

const CORRECTED_FRACTION = 0.08;
/** Fraction of activities that have a later version in the same import, which publishes only the later version. */
const CORRECTED_TOGETHER_FRACTION = 0.01;
const FORBIDDEN_FRACTION = 0.1;
/** Fractions of activities that are indexed late, and of lines with addresses in upper case. */
const LATE_FRACTION = 0.02;
const UPPER_CASE_FRACTION = 0.2;
const LATE_LINES_MAX = 1_500;
const REMEMBERED_MAX = 2_000;

// Generates a chain's history as import lines, determined by the seed except for ids, addresses and timestamps.
export function createTraffic({ run, chain, activitiesMax, brokenFraction }: TrafficOptions) {
  const generator = createGenerator(run, chain);
  const { random, contracts } = generator;
  const memory = createMemory(generator);
  const flow = createFlow(generator, activitiesMax);
  const drawDamage = createDeck(random, DAMAGES);
  const toLine = ({ sequence, activity }: SequencedActivity): TrafficLine => {
    const text = JSON.stringify(activity);
    return { text: random.chance(UPPER_CASE_FRACTION) ? toUpperCase(text) : text, sequence, activity, refusal: [] };
  };
  const sendBroken = (): TrafficLine[] => {
    if (random.chance(FORBIDDEN_FRACTION)) {
      const line = toLine(memory.correct(memory.draw()));
      return [line, toForbidden(line)];
    }
    const { sequence, activity } = generator.toUnpublished(memory.at(memory.draw()));
    return [{ ...drawDamage()(activity), sequence, activity: null }];
  };
  const sendNew = (nowMs: number): TrafficLine[] => {
    const next = flow.next();
    if (next === null) return [];
    const indexed = generator.index(next, nowMs);
    const index = memory.add(indexed);
    const line = toLine(indexed);
    return random.chance(CORRECTED_TOGETHER_FRACTION) ? [line, toLine(memory.correct(index))] : [line];
  };
  return {
    contracts,
    next: (nowMs: number) => {
      if (flow.isOver) return null;
      if (memory.isEmpty) return sendNew(nowMs);
      if (random.chance(brokenFraction)) return sendBroken();
      return random.chance(CORRECTED_FRACTION) ? [toLine(memory.correct(memory.draw()))] : sendNew(nowMs);
    },
  };
}

/** Yields activities in block order, except for late activities. */
function createFlow({ generate, random }: Generator, activitiesMax: number) {
  const late: { readonly dueAt: number; readonly generated: SequencedActivity }[] = [];
  let count = 0;
  return {
    get isOver() {
      return count === activitiesMax && late.length === 0;
    },
    /** @returns null if the next activity is late */
    next: (): SequencedActivity | null => {
      if (late.length > 0 && (count === activitiesMax || late[0]!.dueAt <= count)) return late.shift()!.generated;
      count++;
      const generated = generate();
      if (!random.chance(LATE_FRACTION)) return generated;
      late.push({ dueAt: count + random.integer(20, LATE_LINES_MAX), generated });
      late.sort((a, b) => a.dueAt - b.dueAt);
      return null;
    },
  };
}

function createMemory({ correct, random }: Generator) {
  const remembered: SequencedActivity[] = [];
  return {
    get isEmpty() {
      return remembered.length === 0;
    },
    add: (generated: SequencedActivity): number => {
      if (remembered.length < REMEMBERED_MAX) return remembered.push(generated) - 1;
      const index = random.integer(0, REMEMBERED_MAX - 1);
      remembered[index] = generated;
      return index;
    },
    draw: () => random.integer(0, remembered.length - 1),
    at: (index: number): SequencedActivity => remembered[index]!,
    correct: (index: number): SequencedActivity => {
      const generated = correct(remembered[index]!);
      remembered[index] = generated;
      return generated;
    },
  };
}

function toForbidden({ activity, sequence }: TrafficLine): TrafficLine {
  const text = JSON.stringify({ ...activity, indexed_at: '2020-01-01T00:00:00.000000Z' });
  return { text, sequence, activity: null, refusal: ['indexed_at would be changed'] };
}

/** Converts addresses and hashes to upper case, as some exporters do. */
const toUpperCase = (text: string) =>
  text.replace(/"0x[0-9a-f]{40,64}"/g, (quoted) => quoted.toUpperCase().replace('0X', '0x'));
