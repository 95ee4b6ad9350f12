import type { FoundVersion, VersionSource } from '../page.ts';
import type { ActivityRow } from '../rows.ts';
import type { PageQuestion, ShownActivity } from '../store.ts';
import { toTimeLiteral, toTimesCondition, toUuidLiteral } from './literals.ts';
import type { Questions } from './questions.ts';
import { ACTIVITY_COLUMNS, type StoredActivity, toActivity, toAddress } from './read-columns.ts';
import { RowBinaryReader } from './row-binary.ts';

/**
 * Rows are found where they stand in the table's own order. What little they read in each part is read at once: to look at
 * a condition first, or at an index while reading, takes a question a fifth of its time.
 */
const BY_TABLE = {
  optimize_use_projections: 0,
  max_threads: 1,
  optimize_move_to_prewhere: 0,
  use_skip_indexes_on_data_read: 0,
};

/** Rows as they were written. */
export function createReadWhole({ ask }: Pick<Questions, 'ask'>): VersionSource<ActivityRow>['rows'] {
  return async (question, versions) => {
    const statement = toStatement(question, versions, ACTIVITY_COLUMNS);
    const settings = { ...BY_TABLE, output_format_json_quote_64bit_integers: 0 };
    const answer = await ask(`${statement} FORMAT JSONEachRow`, { chain: question.chain }, settings);
    const lines = answer
      .toString()
      .split('\n')
      .filter((line) => line !== '');
    return lines.map((line) => {
      const { isOutdated, ...stored } = JSON.parse(line) as StoredActivity & { isOutdated: number };
      return { row: toActivity(stored), isOutdated: isOutdated === 1 };
    });
  };
}

/** Rows as the interface shows them: the engine makes their text, and nobody here looks into it. */
export function createReadShown({ ask }: Pick<Questions, 'ask'>): VersionSource<ShownActivity>['rows'] {
  return async (question, versions) => {
    const statement = toStatement(question, versions, SHOWN_COLUMNS);
    const reader = new RowBinaryReader(await ask(`${statement} FORMAT RowBinary`, { chain: question.chain }, BY_TABLE));
    const rows: { row: ShownActivity; isOutdated: boolean }[] = [];
    while (!reader.isAtEnd) {
      const row = { updatedAt: reader.int64(), id: reader.text(), partition: reader.uint16(), members: reader.text() };
      rows.push({ row, isOutdated: reader.uint8() === 1 });
    }
    return rows;
  };
}

/**
 * One question for rows and for which of them have later versions: a question costs the engine milliseconds, whatever it
 * reads. Ids alone would be looked up in as many granules of every part; those of a page were indexed near each other.
 */
function toStatement({ horizon }: PageQuestion, versions: readonly FoundVersion[], columns: string): string {
  const ids = [...new Set(versions.map(({ id }) => id))].map(toUuidLiteral).join(', ');
  const indexed = toTimesCondition(
    'indexed_at',
    versions.map(({ indexedAt }) => indexedAt),
  );
  const updated = toTimesCondition(
    'updated_at',
    versions.map(({ updatedAt }) => updatedAt),
  );
  const outdated =
    'SELECT id, arrayJoin(arrayPopBack(arraySort(groupUniqArray(updated_at)))) FROM activity_versions ' +
    `WHERE chain = {chain: String} AND ${indexed} AND id IN (${ids}) AND updated_at < ${toTimeLiteral(horizon)} GROUP BY id`;
  return (
    `SELECT ${columns}, (id, updated_at) IN (${outdated}) AS isOutdated FROM activities ` +
    `WHERE chain = {chain: String} AND ${updated}`
  );
}

/** Digits of a number in quotes, or null. */
const numberText = (column: string) =>
  `if(isNull(${column}), 'null', concat('"', toString(assumeNotNull(${column})), '"'))`;
const timeText = (column: string) => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`;
const METADATA_TEXT =
  "if(isNull(transaction_hash) OR isNull(block_number) OR isNull(transaction_index), 'null', concat(" +
  `'{"transaction_hash":"', ${toAddress('assumeNotNull(transaction_hash)')}, '","block_number":', ${numberText('block_number')}, ` +
  `',"transaction_index":', ${numberText('transaction_index')}, ',"log_index":', ${numberText('log_index')}, '}'))`;
/** As `toShownActivity` has them, in the order of the reader above. */
const SHOWN_COLUMNS =
  'toUnixTimestamp64Micro(updated_at) AS us, toString(id) AS uuid, kafka_partition, ' +
  `concat('"type":"', type, '","details":', details, ',"updated_at":"', ${timeText('updated_at')}, ` +
  `'","indexed_at":"', ${timeText('indexed_at')}, '","blockchain_metadata":', ${METADATA_TEXT}) AS members`;
