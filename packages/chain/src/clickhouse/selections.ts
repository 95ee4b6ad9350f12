import type { FeedEntry } from '../page.ts';
import type { PageQuestion } from '../store.ts';
import { toFeedName } from './feed-names.ts';
import { toTimeLiteral } from './literals.ts';
import type { QuestionSettings, Questions } from './questions.ts';
import { RowBinaryReader } from './row-binary.ts';

/** From `least`, inclusive, to `end`, exclusive; epoch microseconds. */
export interface Window {
  readonly least: number;
  readonly end: number;
}

/** Selects entries of one feed in a window, up to the limit of the query, in its direction of reading. */
export interface Selection {
  readonly question: PageQuestion;
  readonly window: Window;
}

export interface Selected {
  /** By selection, each in its direction of reading. */
  readonly entries: readonly (readonly FeedEntry[])[];
  /** Rows that ClickHouse has read for all selections together. */
  readonly readRows: number;
}

/** Runs several selections in one statement. @throws StoreFault */
export async function selectEntries(
  ask: Questions['ask'],
  selections: readonly Selection[],
  settings: QuestionSettings,
): Promise<Selected> {
  const { bytes, readRows } = await ask(toStatement(selections), toParams(selections), settings);
  return { entries: readEntries(bytes, selections.length), readRows };
}

/** Time of the first entry from `edge` on; the horizon when there is none. */
export async function findFirst(ask: Questions['ask'], question: PageQuestion, edge: number): Promise<number> {
  const { bytes } = await ask(
    `SELECT toUnixTimestamp64Micro(updated_at) FROM activity_feeds WHERE ${isOfFeed(0)} ` +
      `AND updated_at >= ${toTimeLiteral(edge)} ORDER BY ${FEED_ORDER.join(', ')} LIMIT 1 FORMAT RowBinary`,
    toParams([{ question }]),
    SETTINGS,
  );
  return bytes.length === 0 ? question.horizon : Math.min(question.horizon, new RowBinaryReader(bytes).int64());
}

/** Little is read of each part. Evaluating conditions or indexes first would take longer than reading it. */
export const SETTINGS: QuestionSettings = {
  max_threads: 1,
  // Small, so that reading in order can stop early.
  max_block_size: 256,
  // With buffering, each part would be read until it could fill the page alone.
  read_in_order_use_buffering: 0,
  // Merges the order of parts before it reads the text of rows: a third less work with fifty parts.
  read_in_order_two_level_merge_threshold: 1,
  optimize_move_to_prewhere: 0,
  use_skip_indexes_on_data_read: 0,
  output_format_parallel_formatting: 0,
};

/** The whole sorting key: without its beginning ClickHouse would sort a feed that is sorted already. */
const FEED_ORDER = ['feed', 'updated_at', 'id'];

function toStatement(selections: readonly Selection[]): string {
  const [only, ...others] = selections.map(toSelect);
  if (others.length === 0) return `${only} FORMAT RowBinary`;
  return `(${[only, ...others].join(') UNION ALL (')}) FORMAT RowBinary`;
}

/** Each row has the number of its selection: rows of several selections come mixed, but in order within a selection. */
function toSelect({ question, window }: Selection, place: number): string {
  const order = question.direction === 'next' ? '' : ' DESC';
  return (
    `SELECT ${place}, toUnixTimestamp64Micro(updated_at), toString(id), kafka_partition, ` +
    `superseded_at < ${toTimeLiteral(question.horizon)}, members FROM activity_feeds ` +
    `WHERE ${toConditions(question, window, place)} ` +
    `ORDER BY ${FEED_ORDER.map((column) => column + order).join(', ')} LIMIT ${question.limit}`
  );
}

function readEntries(bytes: Buffer, selections: number): FeedEntry[][] {
  const entries = Array.from({ length: selections }, (): FeedEntry[] => []);
  for (const reader = new RowBinaryReader(bytes); !reader.isAtEnd; ) {
    const own = entries[reader.uint8()]!;
    // Not with spread: that takes several times as long, and a page creates most of its objects here.
    const updatedAt = reader.int64();
    const id = reader.ascii();
    const partition = reader.uint16();
    const isOutdated = reader.uint8() === 1;
    own.push({ updatedAt, id, partition, isOutdated, members: reader.bytes() });
  }
  return entries;
}

const isOfFeed = (place: number) => `feed = {feed${place}: String}`;

const toParams = (selections: readonly Pick<Selection, 'question'>[]) =>
  Object.fromEntries(
    selections.map(({ question: { chain, filters } }, place) => [`feed${place}`, toFeedName(chain, filters)]),
  );

function toConditions({ filters }: PageQuestion, { least, end }: Window, place: number): string {
  const { fromIndexedAt, toIndexedAt } = filters;
  return [
    isOfFeed(place),
    `updated_at >= ${toTimeLiteral(least)} AND updated_at < ${toTimeLiteral(end)}`,
    // A caller may give times before 1970, but there are no such activities.
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${toTimeLiteral(Math.max(0, fromIndexedAt))}`]),
    ...(toIndexedAt === null ? [] : [toIndexedAt < 0 ? 'false' : `indexed_at <= ${toTimeLiteral(toIndexedAt)}`]),
  ].join(' AND ');
}
