// Records of one kind in Redis; infra/redis/README.md lists the keys.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PRESENT_RUN_LUA, type Redis } from '@playline/stores/redis';
import type { Change, ReceivedRecord, RecordKind } from '../records/record-log.ts';
import { IncompleteViewFault, type RecordView, type ViewUpdate } from '../records/record-view.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';

export interface RedisRecordView<R extends Change> extends RecordView<R> {
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Waits a second for Redis, then opens without it. */
export async function openRedisRecords<R extends Change>(
  kind: RecordKind<R>,
  options: RedisAccessOptions,
): Promise<RedisRecordView<R>> {
  const { redis, ready, close } = await openConnection(options);
  return { ...createRecordView(kind, redis, options.namespace ?? ''), ready, close };
}

const PRESENT_RUN = `${PRESENT_RUN_LUA}
local run = present_run()
`;

/** A process that missed more changes reads all records. */
const CHANGES_KEPT = 1000;
/** Keeps a step of a scan below two milliseconds of Redis's time. */
const RECORDS_PER_SCAN = 500;

/** KEYS: mark of completeness, offsets. Replies the present run, the run of the mark or nil, the offsets. */
const STATUS = `${PRESENT_RUN}
return {run, redis.call('GET', KEYS[1]), redis.call('HGETALL', KEYS[2])}`;

/**
 * KEYS: mark of completeness, changes, records. ARGV: known version, or ''. Replies nothing when the records are
 * incomplete; else the version and the changed records (nil for names of states); only the version when the known one
 * is not in the list.
 */
const READ = `${PRESENT_RUN}
local version = redis.call('LINDEX', KEYS[2], -1)
if not version or redis.call('GET', KEYS[1]) ~= run then return {} end
if version == ARGV[1] then return {version, {}} end
local at = redis.call('LPOS', KEYS[2], ARGV[1])
if not at then return {version} end
return {version, redis.call('HMGET', KEYS[3], unpack(redis.call('LRANGE', KEYS[2], at + 1, -2)))}`;

/**
 * KEYS: records, offsets, changes, mark of completeness. ARGV: JSON of the update. Replies 0, without effect, when its
 * run is past. An offset is moved only from its expected value, else the view stays incomplete and is synced again.
 */
const UPDATE = `${PRESENT_RUN}
local given = cjson.decode(ARGV[1])
if given.run ~= '' and given.run ~= run then return 0 end
local function present(id)
  local text = redis.call('HGET', KEYS[1], id)
  if not text then return -1, -1 end
  local revision, offset = string.match(text, '^(%d+) %d+ (%d+) ')
  return tonumber(revision), tonumber(offset)
end
for _, gone in ipairs(given.removed) do
  local revision, offset = present(gone.id)
  if revision == gone.revision and offset == gone.offset then redis.call('HDEL', KEYS[1], gone.id) end
end
if given.isRestored then redis.call('DEL', KEYS[2], KEYS[3]) end
local isChanged = redis.call('EXISTS', KEYS[3]) == 0
for _, change in ipairs(given.changes) do
  local revision, offset = present(change.id)
  if change.revision > revision or (change.revision == revision and change.offset > offset) then
    redis.call('HSET', KEYS[1], change.id, change.text)
    redis.call('RPUSH', KEYS[3], change.id)
    isChanged = true
  end
end
if isChanged then
  redis.call('RPUSH', KEYS[3], given.version)
  redis.call('LTRIM', KEYS[3], -${CHANGES_KEPT}, -1)
end
local isWhole = true
for _, move in ipairs(given.moves) do
  local offset = redis.call('HGET', KEYS[2], move.partition) or ''
  if given.isRestored or offset == move.from then redis.call('HSET', KEYS[2], move.partition, move.to)
  else isWhole = false end
end
if given.run ~= '' and isWhole then redis.call('SET', KEYS[4], run) end
return 1`;

function createRecordView<R extends Change>(kind: RecordKind<R>, redis: Redis, namespace: string): RecordView<R> {
  const records = `${namespace}access:${kind.name}`;
  const names = {
    records,
    offsets: `${records}:places`,
    changes: `${records}:changes`,
    complete: `${records}:complete`,
    turn: `${records}:turn`,
  };
  const put = async (update: ViewUpdate<R> & { removed?: readonly ReceivedRecord<R>[] }) => {
    const { changes, moves, completeIn, removed } = update;
    const given = {
      version: randomUUID(),
      run: completeIn ?? '',
      isRestored: removed !== undefined,
      removed: (removed ?? []).map((each) => ({ id: kind.idOf(each.record), ...orderOf(each) })),
      changes: changes.map((each) => ({ id: kind.idOf(each.record), ...orderOf(each), text: toText(each) })),
      moves: moves.map(({ partition, from, to }) => ({
        partition: String(partition),
        from: String(from ?? ''),
        to: String(to),
      })),
    };
    const keys = [names.records, names.offsets, names.changes, names.complete];
    if ((await redis.call('EVAL', [UPDATE, keys.length, ...keys, JSON.stringify(given)])) !== 1)
      throw new Error('Redis was restarted during the update');
  };
  return {
    kind,
    status: async () => {
      const reply = await redis.eval(STATUS, 2, names.complete, names.offsets);
      const [run, completeIn, offsets] = reply as [string, string | null, string[]];
      const pairs = offsets.flatMap((partition, at) =>
        at % 2 === 0 ? [[Number(partition), Number(offsets[at + 1])] as const] : [],
      );
      return { run, completeIn, offsets: new Map(pairs) };
    },
    readSince: createReadSince(kind, redis, names),
    update: put,
    restore: put,
    held: async () => (await redis.hvals(names.records)).map((text) => fromText<R>(text)),
    exclusive: (work) => runInTurn(redis, names.turn, work),
  };
}

function createReadSince<R extends Change>(
  kind: RecordKind<R>,
  redis: Redis,
  names: Record<'records' | 'changes' | 'complete', string>,
): RecordView<R>['readSince'] {
  const readChanges = async (known: string | null) => {
    const reply = await redis.eval(READ, 3, names.complete, names.changes, names.records, known ?? '');
    const [version, texts] = reply as [string?, (string | null)[]?];
    if (version === undefined)
      throw new IncompleteViewFault(`Redis has lost ${kind.name}, or recent changes of them, or never had them`);
    const records = texts?.flatMap((text) => (text === null ? [] : [fromText<R>(text).record])) ?? null;
    return { version, records };
  };
  const readAll = async () => {
    const records = new Map<string, R>();
    let cursor = '0';
    do {
      const [next, pairs] = await redis.hscan(names.records, cursor, 'COUNT', RECORDS_PER_SCAN);
      for (let at = 0; at < pairs.length; at += 2) records.set(pairs[at]!, fromText<R>(pairs[at + 1]!).record);
      cursor = next;
    } while (cursor !== '0');
    return records;
  };
  return async (known) => {
    let page = await readChanges(known);
    if (page.records !== null) return { version: page.version, isWhole: false, records: page.records };
    for (;;) {
      const records = await readAll();
      // A scan may miss changes during it.
      page = await readChanges(page.version);
      for (const record of page.records ?? []) records.set(kind.idOf(record), record);
      if (page.records !== null) return { version: page.version, isWhole: true, records: [...records.values()] };
    }
  };
}

const orderOf = <R extends Change>({ record, offset }: ReceivedRecord<R>) => ({ revision: record.revision, offset });

/** `revision partition offset JSON`: a script orders records without parsing them. */
const toText = <R extends Change>({ record, partition, offset }: ReceivedRecord<R>): string =>
  `${record.revision} ${partition} ${offset} ${JSON.stringify(record)}`;

function fromText<R>(text: string): ReceivedRecord<R> {
  const [, partition, offset, json = ''] = /^\d+ (\d+) (\d+) (.*)$/s.exec(text) ?? [];
  return { record: JSON.parse(json) as R, partition: Number(partition), offset: Number(offset) };
}

/** Others wait this long when the process of a turn dies. */
const TURN_MS = 5_000;
/** Several attempts before a turn would end. */
const PROLONG_MS = 1_500;
const POLL_MS = 25;

/** KEYS: the turn. ARGV: the expected owner, its duration in ms; 0 ends it. */
const KEEP_TURN = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** @throws what the work throws, or Redis' error */
async function runInTurn<T>(redis: Redis, key: string, work: () => Promise<T>): Promise<T> {
  const me = randomUUID();
  while ((await redis.set(key, me, 'PX', TURN_MS, 'NX')) === null) await delay(POLL_MS);
  const keep = (forMs: number) => redis.eval(KEEP_TURN, 1, key, me, forMs);
  // A turn that is not prolonged ends. The process then notices other changes in the log before its own.
  const timer = setInterval(() => void keep(TURN_MS).catch(() => {}), PROLONG_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await keep(0).catch(() => {});
  }
}
