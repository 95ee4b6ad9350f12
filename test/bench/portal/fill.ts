import { createHash } from 'node:crypto';
import { createEventCounts } from '@playline/events/clickhouse';
import { type Engine, waitForMerges } from '../clickhouse.ts';
import { type Bench, type Range, scaled } from '../figure.ts';
import { createGame, eventsStatement, FIRST_PARTITION, type Game, idsOf, rowsOf } from '../queries/fill.ts';

const EVENTS = 20_000_000;
const REJECTIONS = 100_000;
const PEOPLE = 1_000_000;
const AUDIT_ENTRIES = 20_000;
const CHUNK_ROWS = 1_000_000;
const MERGES_MAX_MS = 1_800_000;
const SETTINGS = 'SETTINGS max_insert_threads = 2, max_threads = 2, max_partitions_per_insert_block = 200';

export async function fillEnvironment(engine: Engine, bench: Bench, projectId: string): Promise<void> {
  await engine.query(auditStatement({ ...bench, projectId }, scaled(bench, AUDIT_ENTRIES)));
  await fillEvents(engine, bench);
}

/** Events of people, rejections and the counts of the overview. */
export async function fillEvents(engine: Engine, bench: Bench): Promise<void> {
  const events = bench.rows ?? scaled(bench, EVENTS);
  const game = upToNow({ ...createGame(bench.environmentId, events), people: scaled(bench, PEOPLE) });
  for (let first = 0; first < events; first += CHUNK_ROWS) {
    const count = Math.min(CHUNK_ROWS, events - first);
    await engine.query(`${eventsStatement(game, rowsOf(game, { first, count }))} ${SETTINGS}`);
  }
  await engine.query(peopleStatement(game));
  await engine.query(rejectionsStatement(bench.environmentId, scaled(bench, REJECTIONS)));
  await waitForMerges(engine, bench.database, MERGES_MAX_MS);
  await createEventCounts({ ...bench.stores.clickhouse, database: bench.database }).update();
  await engine.query('SYSTEM RELOAD DICTIONARY identity_persons');
}

/** The events end now, because the shortest time range of the overview is the last hour. */
function upToNow(game: Game): Game {
  const laterMs = Date.now() - game.endMs;
  return { ...game, startMs: game.startMs + laterMs, endMs: game.endMs + laterMs };
}

function peopleStatement({ environmentId, people }: Game): string {
  const { anonymousKey, userKey } = idsOf('number');
  return `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version, stored_at)
  SELECT '${environmentId}', member.1, arrayMin(key -> key.1, members), member.2, at, 1 + number, at FROM (
    SELECT number, [(${anonymousKey}, 'anonymous'), (${userKey}, 'steam')] AS members, now64(3) - INTERVAL 1 HOUR AS at
    FROM numbers(${people})) ARRAY JOIN members AS member ${SETTINGS}`;
}

function rejectionsStatement(environmentId: string, rejections: number): string {
  return `INSERT INTO message_rejections
    (environment_id, code, field, surface, library, library_version, received_at, trace_id, kafka_partition, kafka_offset)
  SELECT '${environmentId}', ['MISSING_REQUIRED_FIELD', 'INVALID_ENUM', 'INVALID_VALUE', 'TOO_LONG'][1 + number % 4],
    concat('field', toString(number % 37)), ['web', 'unity', 'unreal'][1 + number % 3], 'audience-web',
    concat('2.', toString(number % 9), '.0'), now64(3) - toIntervalSecond(intDiv(number * 89 * 86400, ${rejections})),
    lower(hex(sipHash128(number))), ${FIRST_PARTITION}, number
  FROM numbers(${rejections}) ${SETTINGS}`;
}

function auditStatement(owner: { environmentId: string; projectId: string }, entries: number): string {
  return `INSERT INTO audit_log
    (project_id, environment_id, happened_at, entry_id, kind, object, revision, action, actor, request_id, address, detail)
  SELECT '${owner.projectId}', '${owner.environmentId}', now64(3) - toIntervalMinute(number * 30), toString(number), 'project', toString(number),
    1, 'project.change', 'bench', lower(hex(sipHash128(number))), '127.0.0.1', '{"name":"Bench"}'
  FROM numbers(${entries}) ${SETTINGS}`;
}

const ACTIVITIES = 3_000_000;
const MINTS = 100_000;
const ERASURES = 500;
/** Activities per insert, with four rows each. An insert uses about 0.5 GB of ClickHouse memory. */
const CHAIN_CHUNK_ROWS = 125_000;
const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
const US_PER_MS = 1_000;
const BACKFILL = { agoMs: DAY_MS, durationMs: 600_000 };
const VERSIONS_PER_UPDATE = 20;
const CHAIN_SETTINGS = 'SETTINGS max_insert_threads = 1, max_threads = 2, max_insert_block_size = 500000';

export const CHAIN = 'bench-chain';
// Contracts by number: two with 10 % of all activities each, 100 with 0.5 % each, and small contracts.
const [BIG, BACKFILLED, FIRST_MIDDLE, FIRST_SMALL] = [0, 1, 2, 1_000];
const MIDDLES = 100;
const ROWS_PER_SMALL = 100;
const addressOf = (contract: number) => `0x${createHash('sha1').update(`contract ${contract}`).digest('hex')}`;

export const CONTRACTS = {
  big: addressOf(BIG),
  backfilled: addressOf(BACKFILLED),
  middles: [0, 1, 2, 3, 4, 5].map((index) => addressOf(FIRST_MIDDLE + index)),
  smalls: [0, 1].map((index) => addressOf(FIRST_SMALL + index)),
} as const;

export const ERASURE_ID = '00000000-0000-4000-8000-000000000007';

export async function fillChain(engine: Engine, bench: Bench, projectId: string): Promise<void> {
  const activities = scaled(bench, ACTIVITIES, 100_000);
  const shape = shapeOf(activities);
  for (let first = 0; first < activities; first += CHAIN_CHUNK_ROWS) {
    const range = { first, count: Math.min(CHAIN_CHUNK_ROWS, activities - first) };
    await engine.query(versionsStatement(shape, range));
    await engine.query(supersededStatement(shape, range));
  }
  await engine.query(tokensStatement());
  await engine.query(mintsStatement({ ...bench, projectId }, scaled(bench, MINTS)));
  for (const statement of erasureStatements(bench.environmentId)) await engine.query(statement);
}

type Shape = ReturnType<typeof shapeOf>;

function shapeOf(activities: number) {
  const nowMs = Date.now();
  return {
    startUs: (nowMs - YEAR_MS) * US_PER_MS,
    stepUs: Math.floor((YEAR_MS * US_PER_MS) / activities),
    backfillUs: (nowMs - BACKFILL.agoMs) * US_PER_MS,
    backfillStepUs: Math.floor((BACKFILL.durationMs * US_PER_MS) / activities),
    smalls: Math.max(1, Math.round((activities * 0.3) / ROWS_PER_SMALL)),
  };
}

const numberOf = (salt: number) => `cityHash64(base, ${salt})`;
const addressText = (of: string) => `concat('0x', lower(hex(substring(SHA1(${of}), 1, 20))))`;
const IS_SUPERSEDED = `number % ${VERSIONS_PER_UPDATE} = 0`;

/** Selects versions in time order. Fields that do not change between versions are computed from `base`. */
function versionRowsOf(shape: Shape, { first, count }: Range): string {
  const { startUs, stepUs, backfillUs, backfillStepUs, smalls } = shape;
  const timeOf = (number: string) =>
    `if(contract = ${BACKFILLED}, ${backfillUs} + (${number}) * ${backfillStepUs}, ${startUs} + (${number}) * ${stepUs})`;
  const time = (us: string) => `fromUnixTimestamp64Micro(toInt64(${us}), 'UTC')`;
  const contractRank = `${numberOf(1)} % 1000`;
  return `
  SELECT number, base, ${time(timeOf('number'))} AS updated_at, ${time(timeOf('number + 1'))} AS next_at,
    ${time(`${timeOf('base')} - 5000000`)} AS indexed_at, reinterpretAsUUID(sipHash128(base)) AS id,
    ['mint', 'transfer', 'transfer', 'sale'][1 + ${numberOf(3)} % 4] AS type, ${addressText("concat('contract ', toString(contract))")} AS address,
    arrayMap(of -> concat('${CHAIN} ', of), ['* *', concat('* ', type), concat(address, ' *'), concat(address, ' ', type)]) AS feeds
  FROM (
    SELECT number, if(number % ${VERSIONS_PER_UPDATE} = 1, number - 1, number) AS base,
      multiIf(${contractRank} < 100, ${BIG}, ${contractRank} < 200, ${BACKFILLED}, ${contractRank} < 700, ${FIRST_MIDDLE} + ${numberOf(2)} % ${MIDDLES},
        ${FIRST_SMALL} + ${numberOf(2)} % ${smalls}) AS contract
    FROM numbers(${first}, ${count}))`;
}

const COLUMNS = 'entry, feed, updated_at, id, indexed_at, kafka_partition, superseded_at, members';

function versionsStatement(shape: Shape, range: Range): string {
  const text = (of: string) => `formatDateTime(${of}, '%Y-%m-%dT%H:%i:%S.%fZ')`;
  const asset = `'{"contract_type":"ERC721","contract_address":"', address, '","token_id":"', toString(${numberOf(4)} % 100000), '","amount":"1"}'`;
  const people = `'"from":"', ${addressText('toString(base)')}, '","to":"', ${addressText('toString(base + 1)')}, '"'`;
  const payment = `if(type = 'sale', '"payment":{"token":{"contract_type":"NATIVE","symbol":"ETH"},"price_including_fees":"105","fees":[]},', '')`;
  const members = `concat('"type":"', type, '","details":{', ${people}, ',"amount":"1",', ${payment}, '"asset":', ${asset}, '},"updated_at":"',
    ${text('updated_at')}, '","indexed_at":"', ${text('indexed_at')}, '","blockchain_metadata":{"transaction_hash":"0x',
    lower(hex(SHA256(toString(base)))), '","block_number":"', toString(10000000 + intDiv(base, 40)), '","transaction_index":"3","log_index":"1"}')`;
  return `INSERT INTO activity_feeds (${COLUMNS})
  SELECT 'version', feed, updated_at, id, indexed_at, 0, fromUnixTimestamp64Micro(9007199254740990, 'UTC'), ${members}
  FROM (${versionRowsOf(shape, range)}) ARRAY JOIN feeds AS feed ${CHAIN_SETTINGS}`;
}

function supersededStatement(shape: Shape, range: Range): string {
  return `INSERT INTO activity_feeds (${COLUMNS})
  SELECT 'superseded', feed, updated_at, id, indexed_at, 0, next_at, ''
  FROM (${versionRowsOf(shape, range)}) ARRAY JOIN feeds AS feed WHERE ${IS_SUPERSEDED} ${CHAIN_SETTINGS}`;
}

function tokensStatement(): string {
  return `INSERT INTO tokens (chain, contract, updated_at, name, symbol, decimals)
  SELECT '${CHAIN}', substring(SHA1(concat('contract ', toString(number))), 1, 20), now64(6), concat('Token ', toString(number)), 'TKN', 18
  FROM numbers(50000)`;
}

/** One mint in 100 is pending, one in 50 has failed, and one in 10 has two unmerged revisions. */
function mintsStatement({ environmentId, projectId }: Bench & { projectId: string }, mints: number): string {
  const status = `multiIf(number % 100 = 0, 'pending', number % 50 = 1, 'failed', 'succeeded')`;
  return `INSERT INTO mint_requests (chain, contract, requested_at, attempt_id, reference_id, revision, project_id, environment_id,
    signer, owner, token_id, amount, status, stage, reason, transaction_hash, error, changed_at, trace_id)
  SELECT '${CHAIN}', unhex('${CONTRACTS.big.slice(2)}'), at, substring(sipHash128(number), 1, 16), concat('asset-', toString(number)), revision,
    '${projectId}', '${environmentId}', unhex('${CONTRACTS.smalls[0]!.slice(2)}'), substring(SHA1(toString(number % 20000)), 1, 20),
    toString(number), '1', if(revision = 0, 'pending', ${status}), if(revision = 0, 'accepted', if(number % 100 = 0, 'waiting', 'settled')),
    if(number % 100 = 0, 'the signer does not have the minter role', NULL), SHA256(toString(number)),
    if(number % 50 = 1, 'execution reverted', NULL), at + INTERVAL 5 SECOND, lower(hex(sipHash128(number, 1)))
  FROM (SELECT number, now64(3) - toIntervalSecond(intDiv(number * 89 * 86400, ${mints})) AS at, if(number % 10 = 0, [0, 1], [1]) AS revisions
    FROM numbers(${mints})) ARRAY JOIN revisions AS revision ${CHAIN_SETTINGS}`;
}

function erasureStatements(environmentId: string): string[] {
  const id = `toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(number), 12, '0')))`;
  const at = 'now64(3) - toIntervalHour(number)';
  const trace = `lower(hex(sipHash128(number)))`;
  return [
    `INSERT INTO erasure_requests (erasure_id, environment_id, subject_keys, member_keys, cutoff_at, requested_at, trace_id)
    SELECT ${id}, '${environmentId}', [sipHash128(number)], [], ${at}, ${at}, ${trace} FROM numbers(${ERASURES})`,
    `INSERT INTO erasure_receipts (erasure_id, environment_id, closure_hash, closure_count, cutoff_at, accepted_at, fenced_at,
      visibly_erased_at, log_expires_at, deleted, verified, log_ends, trace_id)
    SELECT ${id}, '${environmentId}', SHA256(toString(number)), 2, ${at}, ${at}, ${at}, ${at} + INTERVAL 15 SECOND, ${at} + INTERVAL 73 HOUR,
      map('clickhouse.events', 12), map('clickhouse.events', 0), map('audience.messages.v1/0', number), ${trace} FROM numbers(${ERASURES})`,
  ];
}
