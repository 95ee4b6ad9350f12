import { createHash } from 'node:crypto';
import { openRedisWatermarks } from '@playline/chain/redis';
import { TOPICS } from '@playline/contracts';
import { toPartition } from '@playline/stream';
import { createEngine, type Engine, waitForMerges, waitForRows } from '../clickhouse.ts';
import { type Bench, type Range, scaled } from '../figure.ts';
import { waitFor } from '../processes.ts';

/** The chain with nearly all activities. The three quiet chains have few. */
export const BUSY = 'busy-chain';
const CHAINS = [BUSY, 'quiet-one', 'quiet-two', 'quiet-three'] as const;
export const FEED_CHAINS: readonly { name: string; id: string }[] = CHAINS.map((name, index) => ({
  name,
  id: `eip155:${index + 1}`,
}));
/** Percentage of activities on each quiet chain. */
const QUIET_CHAIN_PERCENT = 1;

const ROWS = 10_000_000;
const YEAR_US = 365 * 86_400_000_000;
/** Rows per insert. Leaves few parts to merge, and uses about 1 GB of ClickHouse memory. */
const CHUNK_ROWS = 500_000;
/** Small inserts at the end, whose parts are not merged. */
const SMALL_PARTS = 20;
const SMALL_PART_ROWS = 1_000;
/** One row in 19 could be an update. Updates of updates are excluded, which leaves one in 20. */
const ROWS_PER_UPDATE = 19;
/** Half of the updates affect one of the latest 2,000 activities. The other half affect any earlier activity. */
const NEAR_ROWS = 2_000;
const MERGES_MAX_MS = 1_800_000;

// Contracts by number: one with 10 % of all activities, 100 with 0.5 % each, small contracts, one with two rows.
const [PAIR, BIG, FIRST_MIDDLE, FIRST_SMALL] = [0, 1, 2, 1_000];
const MIDDLES = 100;
const ROWS_PER_SMALL = 100;
const addressOf = (contract: number) => `0x${createHash('sha1').update(`contract ${contract}`).digest('hex')}`;

export type Feed = Awaited<ReturnType<typeof fillFeed>>;

const FILLED = ['activities', 'activity_ids', 'activity_feeds'];

const numberOf = (salt: number, of = 'number') => `cityHash64(${of}, ${salt})`;

// Inserts a year of activities. The newest parts stay unmerged until `resumeMerges`, as in a live feed.
export async function fillFeed(bench: Bench) {
  const engine = createEngine(bench);
  const rows = scaled(bench, ROWS, 50_000);
  const endUs = Date.now() * 1_000;
  const shape = { rows, startUs: endUs - YEAR_US, stepUs: Math.floor(YEAR_US / rows) };
  const small = SMALL_PARTS * SMALL_PART_ROWS;
  for (let first = 0; first < rows - small; first += CHUNK_ROWS)
    await fill(engine, shape, { first, count: Math.min(CHUNK_ROWS, rows - small - first) });
  await waitForMerges(engine, bench.database, MERGES_MAX_MS);
  for (const table of FILLED) await engine.query(`SYSTEM STOP MERGES ${table}`);
  for (let first = rows - small; first < rows; first += SMALL_PART_ROWS)
    await fill(engine, shape, { first, count: SMALL_PART_ROWS });
  for (const table of ['activities', 'activity_ids'] as const) await waitForRows(engine, { table, rows });
  await raiseWatermarks(bench, endUs);
  return {
    rows,
    scale: bench.scale,
    startUs: shape.startUs,
    endUs,
    contracts: {
      big: addressOf(BIG),
      middle: addressOf(FIRST_MIDDLE),
      small: addressOf(FIRST_SMALL),
      twoRows: addressOf(PAIR),
    },
  };
}

export async function resumeMerges(bench: Bench): Promise<void> {
  const engine = createEngine(bench);
  for (const table of FILLED) await engine.query(`SYSTEM START MERGES ${table}`);
}

export const partitionOf = (chain: string): number => toPartition(Buffer.from(chain), TOPICS.activities.partitions);

async function raiseWatermarks({ environment }: Bench, us: number): Promise<void> {
  const watermarks = await openRedisWatermarks({ url: environment.REDIS_URL ?? '' });
  try {
    await waitFor('Redis is ready', () => watermarks.ready(), { maxMs: 10_000 });
    for (const chain of CHAINS) await watermarks.publish(partitionOf(chain), us);
  } finally {
    await watermarks.close();
  }
}

interface Shape {
  readonly rows: number;
  readonly startUs: number;
  readonly stepUs: number;
}

async function fill(engine: Engine, shape: Shape, range: Range): Promise<void> {
  const rows = rowsOf(shape, range);
  const settings = `SETTINGS max_insert_threads = 1, max_threads = 2, max_partitions_per_insert_block = 1000,
    max_insert_block_size = ${CHUNK_ROWS}, min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0`;
  const common = 'chain, updated_at, id, indexed_at, contract, type';
  const logged = `transaction_hash, block_number, transaction_index, log_index, details, trace_id, logged_at,
    kafka_partition, kafka_offset`;
  await engine.query(
    `INSERT INTO activities (${common}, ${logged}) SELECT ${common}, ${logged} FROM (${rows}) ${settings}`,
  );
  await engine.query(`INSERT INTO activity_ids (${common}) SELECT ${common} FROM (${rows}) ${settings}`);
  await fillFeeds(engine, shape, range);
}

async function fillFeeds(engine: Engine, { startUs, stepUs }: Shape, { first, count }: Range) {
  const timeOf = (number: number) => `fromUnixTimestamp64Micro(${startUs + number * stepUs}, 'UTC')`;
  const isIn = (time: string) => `${time} >= ${timeOf(first)} AND ${time} < ${timeOf(first + count)}`;
  await engine.query(`INSERT INTO activity_feeds
    (entry, feed, updated_at, id, indexed_at, kafka_partition, superseded_at, members)
    WITH concat('0x', lower(hex(contract))) AS address
    SELECT 'version', feed, updated_at, id, indexed_at, kafka_partition, fromUnixTimestamp64Micro(9007199254740990, 'UTC'),
      ${MEMBERS}
    FROM (SELECT * FROM activities WHERE ${isIn('updated_at')})
    ARRAY JOIN ${FEEDS} AS feed
    SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 8192, min_insert_block_size_bytes = 134217728,
      max_partitions_per_insert_block = 1000`);
  await engine.query(`INSERT INTO activity_feeds (entry, feed, updated_at, id, indexed_at, superseded_at)
    WITH concat('0x', lower(hex(contract))) AS address
    SELECT 'superseded', feed, updated_at, id, indexed_at, next_at
    FROM
    (
      SELECT chain, contract, type, updated_at, id, indexed_at, leadInFrame(updated_at)
        OVER (PARTITION BY chain, id ORDER BY updated_at ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at
      FROM activities
      WHERE id IN (SELECT id FROM activity_ids WHERE ${isIn('updated_at')})
    )
    ARRAY JOIN ${FEEDS} AS feed
    WHERE next_at > updated_at AND ${isIn('next_at')}
    SETTINGS max_threads = 1, max_insert_threads = 1, max_bytes_before_external_sort = 500000000,
      max_partitions_per_insert_block = 1000`);
}

const FEEDS = `[concat(chain, ' * *'), concat(chain, ' ', address, ' *'), concat(chain, ' * ', type), concat(chain, ' ', address, ' ', type)]`;
const numberOrNull = (column: string) =>
  `if(isNull(${column}), 'null', concat('"', toString(assumeNotNull(${column})), '"'))`;
const timeText = (column: string) => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`;
const MEMBERS = `concat('"type":"', type, '","details":', details,
  ',"updated_at":"', ${timeText('updated_at')}, '","indexed_at":"', ${timeText('indexed_at')}, '","blockchain_metadata":',
  if(isNull(transaction_hash) OR isNull(block_number) OR isNull(transaction_index), 'null', concat(
    '{"transaction_hash":"0x', lower(hex(assumeNotNull(transaction_hash))),
    '","block_number":', ${numberOrNull('block_number')},
    ',"transaction_index":', ${numberOrNull('transaction_index')},
    ',"log_index":', ${numberOrNull('log_index')}, '}')))`;

const hexOf = (bytes: string) => `lower(hex(${bytes}))`;
const address = (salt: number) => `'"0x', ${hexOf(`sipHash128(base, ${salt})`)}, '${String(salt).padStart(8, '0')}"'`;
const amount = (salt: number) => `'"', toString(${numberOf(salt, 'base')}), '"'`;

/** JSON fields in the order in which the import writes them. */
const NFT = `'{"contract_type":"ERC721","contract_address":"0x', ${hexOf('contract')}, '","token_id":', ${amount(20)}, ',"amount":"1"}'`;
const DETAILS: Readonly<Record<string, string>> = {
  mint: `'{"to":', ${address(31)}, ',"amount":"1","asset":', ${NFT}, '}'`,
  burn: `'{"from":', ${address(31)}, ',"amount":"1","asset":', ${NFT}, '}'`,
  transfer: `'{"from":', ${address(31)}, ',"to":', ${address(32)}, ',"amount":"1","asset":', ${NFT}, '}'`,
  deposit: `'{"to":', ${address(31)}, ',"amount":', ${amount(21)}, ',"asset":{"contract_type":"ERC20","contract_address":"0x', ${hexOf('contract')}, '"}}'`,
  withdrawal: `'{"from":', ${address(31)}, ',"amount":', ${amount(21)}, ',"asset":{"contract_type":"ERC20","contract_address":"0x', ${hexOf('contract')}, '"}}'`,
  sale: `'{"order_id":"', ${hexOf('sipHash128(base, 33)')}, '","to":', ${address(31)}, ',"from":', ${address(32)}, ',"asset":[', ${NFT}, '],"payment":{"token":{"contract_type":"NATIVE","symbol":"ETH"},"price_excluding_fees":', ${amount(21)}, ',"price_including_fees":', ${amount(22)}, ',"fees":[{"amount":', ${amount(23)}, ',"type":"ROYALTY","recipient":', ${address(34)}, '}]}}'`,
};
const detailsOf = Object.entries(DETAILS)
  .map(([type, parts]) => `type = '${type}', concat(${parts})`)
  .join(', ');

// Selects rows in time order. Fields that never change are computed from `base`, the number of the first version.
function rowsOf({ rows, startUs, stepUs }: Shape, { first, count }: Range): string {
  const pairIn = (of: string) => `${of} IN (${Math.floor(rows * 0.3)}, ${Math.floor(rows * 0.8)})`;
  const pair = pairIn('base');
  const isCandidate = (of: string) => `${numberOf(1, of)} % ${ROWS_PER_UPDATE} = 0`;
  const distance = `if(${numberOf(2)} % 2 = 0, ${numberOf(3)} % least(number, ${NEAR_ROWS}), ${numberOf(3)} % number)`;
  const timeOf = (of: string) => `toInt64(${startUs} + ${of} * ${stepUs} + ${numberOf(4, of)} % ${stepUs})`;
  const quietChains = CHAINS.slice(1).map(
    (chain, index) => `${numberOf(5, 'base')} % 100 < ${(index + 1) * QUIET_CHAIN_PERCENT}, '${chain}'`,
  );
  const partition = CHAINS.map((chain) => `chain = '${chain}', ${partitionOf(chain)}`).join(', ');
  const smallContracts = Math.max(1, Math.round((rows * 0.4) / ROWS_PER_SMALL));
  const contractRank = `${numberOf(6, 'base')} % 1000`;
  const typeRank = `${numberOf(7, 'base')} % 10000`;
  return `
  SELECT multiIf(${pair}, '${BUSY}', ${quietChains.join(', ')}, '${BUSY}') AS chain,
    fromUnixTimestamp64Micro(updated_us, 'UTC') AS updated_at,
    reinterpretAsUUID(sipHash128(base)) AS id,
    fromUnixTimestamp64Micro(indexed_us, 'UTC') AS indexed_at,
    substring(SHA1(concat('contract ', toString(multiIf(${pair}, ${PAIR}, ${contractRank} < 100, ${BIG},
      ${contractRank} < 600, ${FIRST_MIDDLE} + ${numberOf(8, 'base')} % ${MIDDLES},
      ${FIRST_SMALL} + ${numberOf(8, 'base')} % ${smallContracts})))), 1, 20) AS contract,
    multiIf(${typeRank} < 1, 'withdrawal', ${typeRank} < 100, 'burn', ${typeRank} < 1500, 'deposit', ${typeRank} < 3000, 'sale',
      ${typeRank} < 5000, 'mint', 'transfer') AS type,
    reinterpretAsFixedString(reinterpretAsUInt256(concat(sipHash128(base, 9), sipHash128(base, 10)))) AS transaction_hash,
    10000000 + intDiv(base, 40) AS block_number, base % 40 AS transaction_index, base % 3 AS log_index,
    multiIf(${detailsOf}, '') AS details,
    lower(hex(sipHash128(number, 11))) AS trace_id,
    fromUnixTimestamp64Milli(intDiv(updated_us, 1000), 'UTC') AS logged_at,
    multiIf(${partition}, 0) AS kafka_partition,
    number AS kafka_offset
  FROM (
    SELECT number, if(number > 1000 AND NOT ${pairIn('number')} AND ${isCandidate('number')} AND NOT ${isCandidate('before')}, before, number) AS base,
      ${timeOf('number')} AS updated_us,
      ${timeOf('base')} - ${numberOf(12, 'base')} % 30000000 AS indexed_us
    FROM (SELECT number, toUInt64(if(number = 0, 0, number - 1 - ${distance})) AS before FROM numbers(${first}, ${count})))`;
}
