import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { KeyRecord, KeyView } from '../key-store.ts';
import { IncompleteViewFault } from '../records/view-faults.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';
import { createList } from './list.ts';
import { createNames, type Names } from './names.ts';
import { AMEND, COMPLETE, FIND, REMOVE, REPLACE, RESTORE, STANDING } from './scripts.ts';
import { runInTurn } from './turn.ts';

export { type RedisAccessOptions, RedisSharing } from './connection.ts';
export * from './records.ts';
export * from './sessions.ts';
export * from './usage.ts';

export interface RedisKeyStore extends KeyView {
  /** True when Redis answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Keys looked at in one step of a scan: well below a millisecond of Redis's time. */
const SCAN_COUNT = 1000;

/**
 * Key records in Redis. `k:<hash>` has a record as JSON, `k:environment:<id>` the hash of the live key of each kind,
 * `k:project:<id>` the hashes of all keys of a project, `k:complete` the run of Redis in which all this was there,
 * `k:turn` whose turn it is, `k:live` the hashes of all live keys, `k:list` the name of that list, `k:version` the
 * number of its changes, and `k:changes` the last of them. Waits a second for Redis, then opens without it.
 */
export async function openRedisKeyStore(options: RedisAccessOptions): Promise<RedisKeyStore> {
  const { redis, ready, close } = await openConnection(options);
  return { ...createKeyView(redis, createNames(options.namespace ?? '')), ready, close };
}

function createKeyView(redis: Redis, names: Names): KeyView {
  const find = async (hash: string) => {
    // In one step: if Redis restarts between two steps, its loss would not be noticed.
    const reply = await redis.eval(FIND, 2, names.record(hash), names.complete);
    const [record, known] = reply as [string | null, number];
    if (known === 1) return parseRecord(record);
    throw new IncompleteViewFault('Redis has lost the keys, or the last changes of them, or never had them');
  };
  const standing = async () => {
    const [run, completeIn] = (await redis.eval(STANDING, 2, names.complete, names.list)) as [string, string | null];
    return { run, completeIn };
  };
  return {
    find,
    findLive: async (environmentId, kind) => {
      const hash = await redis.hget(names.environment(environmentId), kind);
      return hash === null ? null : find(hash);
    },
    replace: async (ended, added) => {
      const subject = added ?? ended;
      if (subject === null) return true;
      const endedHash = ended?.hash ?? '';
      const addedHash = added?.hash ?? '';
      const shared = [names.environment(subject.environmentId), names.project(subject.projectId)];
      const listed = [names.live, names.changes, names.version, names.list];
      const keys = [...shared, names.record(endedHash), names.record(addedHash), names.complete, ...listed];
      const values = [subject.kind, endedHash, JSON.stringify(ended), addedHash, JSON.stringify(added), randomUUID()];
      return (await redis.call('EVAL', [REPLACE, keys.length, ...keys, ...values])) === 1;
    },
    amend: async (changed) => {
      const keys = [names.environment(changed.environmentId), names.record(changed.hash)];
      const values = [changed.kind, changed.hash, JSON.stringify(changed)];
      return (await redis.call('EVAL', [AMEND, keys.length, ...keys, ...values])) === 1;
    },
    list: async (projectId) => {
      const hashes = await redis.lrange(names.project(projectId), 0, -1);
      const records = await Promise.all(hashes.map(find));
      return records.filter((record) => record !== null).toSorted((a, b) => a.createdAt - b.createdAt);
    },
    isComplete: async () => {
      const { run, completeIn } = await standing();
      return completeIn === run;
    },
    standing,
    hashes: () => scanHashes(redis, names),
    ...createList(redis, names),
    restore: createRestore(redis, names),
    exclusive: (work) => runInTurn(redis, names.turn, work),
  };
}

function createRestore(redis: Redis, names: Names): KeyView['restore'] {
  const keysOf = (record: KeyRecord) => [
    names.environment(record.environmentId),
    names.project(record.projectId),
    names.record(record.hash),
    names.live,
  ];
  const restore = (record: KeyRecord) => {
    const values = [record.kind, record.hash, JSON.stringify(record), record.revokedAt === null ? '' : '1'];
    return redis.call('EVAL', [RESTORE, 4, ...keysOf(record), ...values]);
  };
  const remove = async (hash: string) => {
    const record = parseRecord(await redis.get(names.record(hash)));
    if (record !== null) await redis.call('EVAL', [REMOVE, 4, ...keysOf(record), record.kind, hash]);
  };
  return async (records, strangers, run) => {
    await Promise.all(strangers.map(remove));
    // Ended keys first: they make room for the live key of their environment.
    await Promise.all(records.filter(({ revokedAt }) => revokedAt !== null).map(restore));
    await Promise.all(records.filter(({ revokedAt }) => revokedAt === null).map(restore));
    if ((await redis.eval(COMPLETE, 2, names.complete, names.list, run, randomUUID())) !== 1)
      throw new Error('Redis was started anew meanwhile');
  };
}

async function scanHashes(redis: Redis, names: Names): Promise<string[]> {
  const found = new Set<string>();
  for await (const page of redis.scanStream({ match: names.record('*'), count: SCAN_COUNT }))
    for (const key of page as string[]) {
      const hash = key.slice(names.record('').length);
      if (HASH.test(hash)) found.add(hash);
    }
  return [...found];
}

/** A record's key ends with the hash; the other keys below `k:` do not look like one. */
const HASH = /^[0-9a-f]{64}$/;

/** Values for members that older releases did not store. */
const UNSAID = { name: '', text: null, changedBy: '', requestId: '', origins: [], changedAt: 0 };

function parseRecord(text: string | null): KeyRecord | null {
  return text === null ? null : { ...UNSAID, ...(JSON.parse(text) as KeyRecord) };
}
