// Record views in Redis; infra/redis/README.md lists the keys.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PRESENT_RUN_LUA, type Redis, toFamily } from '@playline/stores/redis';
import type { Change, ReceivedRecord, RecordKind } from '../records/record-log.ts';
import { IncompleteViewFault, type RecordView, type ViewUpdate } from '../records/record-view.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';

export interface RedisRecordView<R extends Change> extends RecordView<R> {
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Waits up to a second for Redis, and opens even if Redis is down. */
export async function openRedisRecords<R extends Change>(
  kind: RecordKind<R>,
  options: RedisAccessOptions,
): Promise<RedisRecordView<R>> {
  const { redis, ready, close } = await openConnection(options);
  return { ...createRecordView(kind, redis, toFamily(options, `access:${kind.name}`)), ready, close };
}

const PRESENT_RUN = `${PRESENT_RUN_LUA}
local run = present_run()
`;

/** A process that has missed more changes reads all records. */
const CHANGES_KEPT = 1000;
/** Limits each scan step to two milliseconds of Redis time. */
const RECORDS_PER_SCAN = 500;

/** KEYS: completeness marker, offsets. Returns the current run, the run in the marker or nil, and the offsets. */
const STATUS = `${PRESENT_RUN}
return {run, redis.call('GET', KEYS[1]), redis.call('HGETALL', KEYS[2])}`;

/**
 * KEYS: completeness marker, changes, records. ARGV: known version, or ''. Returns nothing if the records are
 * incomplete. Otherwise returns the version and the changed records (nil for version entries), or only the version if
 * the known version is no longer in the list.
 */
const READ = `${PRESENT_RUN}
local version = redis.call('LINDEX', KEYS[2], -1)
if not version or redis.call('GET', KEYS[1]) ~= run then return {} end
if version == ARGV[1] then return {version, {}} end
local at = redis.call('LPOS', KEYS[2], ARGV[1])
if not at then return {version} end
return {version, redis.call('HMGET', KEYS[3], unpack(redis.call('LRANGE', KEYS[2], at + 1, -2)))}`;

/**
 * KEYS: records, offsets, changes, completeness marker. ARGV: update as JSON. Returns 0 and changes nothing if the
 * update's run has ended. An offset advances only from its expected value; otherwise the view stays incomplete until
 * the next sync.
 */
const UPDATE = `${PRESENT_RUN}
local update = cjson.decode(ARGV[1])
if update.run ~= '' and update.run ~= run then return 0 end
local function current(id)
  local text = redis.call('HGET', KEYS[1], id)
  if not text then return -1, -1 end
  local revision, offset = string.match(text, '^(%d+) %d+ (%d+) ')
  return tonumber(revision), tonumber(offset)
end
for _, removed in ipairs(update.removed) do
  local revision, offset = current(removed.id)
  if revision == removed.revision and offset == removed.offset then redis.call('HDEL', KEYS[1], removed.id) end
end
if update.isRestored then redis.call('DEL', KEYS[2], KEYS[3]) end
local isChanged = redis.call('EXISTS', KEYS[3]) == 0
for _, change in ipairs(update.changes) do
  local revision, offset = current(change.id)
  if change.revision > revision or (change.revision == revision and change.offset > offset) then
    redis.call('HSET', KEYS[1], change.id, change.text)
    redis.call('RPUSH', KEYS[3], change.id)
    isChanged = true
  end
end
if isChanged then
  redis.call('RPUSH', KEYS[3], update.version)
  redis.call('LTRIM', KEYS[3], -${CHANGES_KEPT}, -1)
end
local isWhole = true
for _, move in ipairs(update.moves) do
  local offset = redis.call('HGET', KEYS[2], move.partition) or ''
  if update.isRestored or offset == move.from then redis.call('HSET', KEYS[2], move.partition, move.to)
  else isWhole = false end
end
if update.run ~= '' and isWhole then redis.call('SET', KEYS[4], run) end
return 1`;

function createRecordView<R extends Change>(kind: RecordKind<R>, redis: Redis, records: string): RecordView<R> {
  const names = {
    records,
    offsets: `${records}:places`,
    changes: `${records}:changes`,
    complete: `${records}:complete`,
    lock: `${records}:turn`,
  };
  const put = async (update: ViewUpdate<R> & { removed?: readonly ReceivedRecord<R>[] }) => {
    const { changes, moves, completeIn, removed } = update;
    const argument = {
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
    if ((await redis.call('EVAL', [UPDATE, keys.length, ...keys, JSON.stringify(argument)])) !== 1)
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
    readStored: async () => (await redis.hvals(names.records)).map((text) => fromText<R>(text)),
    exclusive: (work) => runLocked(redis, names.lock, work),
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
      throw new IncompleteViewFault(`the ${kind.name} in Redis are incomplete: wait for the next sync from the log`);
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
      // The scan may miss concurrent changes, so read the changes since its start.
      page = await readChanges(page.version);
      for (const record of page.records ?? []) records.set(kind.idOf(record), record);
      if (page.records !== null) return { version: page.version, isWhole: true, records: [...records.values()] };
    }
  };
}

const orderOf = <R extends Change>({ record, offset }: ReceivedRecord<R>) => ({ revision: record.revision, offset });

/** Format: `revision partition offset JSON`, so that scripts can compare records without parsing JSON. */
const toText = <R extends Change>({ record, partition, offset }: ReceivedRecord<R>): string =>
  `${record.revision} ${partition} ${offset} ${JSON.stringify(record)}`;

function fromText<R>(text: string): ReceivedRecord<R> {
  const [, partition, offset, json = ''] = /^\d+ (\d+) (\d+) (.*)$/s.exec(text) ?? [];
  return { record: JSON.parse(json) as R, partition: Number(partition), offset: Number(offset) };
}

/** Other processes wait this long if the process that holds the lock crashes. */
const LOCK_MS = 5_000;
/** Leaves time for several attempts before the lock expires. */
const RENEW_MS = 1_500;
const POLL_MS = 25;

/** KEYS: lock. ARGV: expected owner, new lifetime in milliseconds; 0 releases the lock. */
const RENEW_LOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Runs `work` while holding the lock. @throws any error of `work` or Redis */
async function runLocked<T>(redis: Redis, key: string, work: () => Promise<T>): Promise<T> {
  const owner = randomUUID();
  while ((await redis.set(key, owner, 'PX', LOCK_MS, 'NX')) === null) await delay(POLL_MS);
  const renew = (forMs: number) => redis.eval(RENEW_LOCK, 1, key, owner, forMs);
  // If the lock expires, this process still detects concurrent changes that precede its own change in the log.
  const timer = setInterval(() => void renew(LOCK_MS).catch(() => {}), RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await renew(0).catch(() => {});
  }
}
