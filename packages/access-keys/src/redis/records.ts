import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Change, Placed, RecordKind } from '../records/record-log.ts';
import type { RecordView, ViewUpdate } from '../records/record-view.ts';
import { IncompleteViewFault } from '../records/view-faults.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';
import { READ_RECORDS, RECORDS_STANDING, UPDATE_RECORDS } from './record-scripts.ts';
import { runInTurn } from './turn.ts';

export interface RedisRecordView<R extends Change> extends RecordView<R> {
  /** True when Redis answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Records of one kind in Redis. `access:<kind>` has each record by id, with its revision and its place in the log;
 * `access:<kind>:places` the offset by partition before which everything was applied; `access:<kind>:version` a name of
 * the present state; `access:<kind>:complete` the run of Redis in which all of it was there; `access:<kind>:turn` whose
 * turn it is. Waits a second for Redis, then opens without it.
 */
export async function openRedisRecords<R extends Change>(
  kind: RecordKind<R>,
  options: RedisAccessOptions,
): Promise<RedisRecordView<R>> {
  const { redis, ready, close } = await openConnection(options);
  return { ...createRecordView(kind, redis, options.namespace ?? ''), ready, close };
}

function createRecordView<R extends Change>(kind: RecordKind<R>, redis: Redis, namespace: string): RecordView<R> {
  const records = `${namespace}access:${kind.name}`;
  const names = {
    records,
    places: `${records}:places`,
    version: `${records}:version`,
    complete: `${records}:complete`,
    turn: `${records}:turn`,
  };
  const put = async ({ changes, moves, completeIn, ...rest }: ViewUpdate<R> & { removed?: readonly Placed<R>[] }) => {
    const given = {
      version: randomUUID(),
      run: completeIn ?? '',
      isRestored: rest.removed !== undefined,
      removed: (rest.removed ?? []).map((placed) => ({ id: kind.idOf(placed.record), ...orderOf(placed) })),
      changes: changes.map((placed) => ({ id: kind.idOf(placed.record), ...orderOf(placed), text: toText(placed) })),
      moves: moves.map(({ partition, from, to }) => ({
        partition: String(partition),
        from: String(from ?? ''),
        to: String(to),
      })),
    };
    const keys = [names.records, names.places, names.version, names.complete];
    if ((await redis.call('EVAL', [UPDATE_RECORDS, keys.length, ...keys, JSON.stringify(given)])) !== 1)
      throw new Error('Redis was started anew meanwhile');
  };
  return {
    standing: async () => {
      const reply = await redis.eval(RECORDS_STANDING, 2, names.complete, names.places);
      const [run, completeIn, places] = reply as [string, string | null, string[]];
      const pairs = places.flatMap((partition, at) =>
        at % 2 === 0 ? [[Number(partition), Number(places[at + 1])] as const] : [],
      );
      return { run, completeIn, places: new Map(pairs) };
    },
    readSince: async (version) => {
      const reply = await redis.eval(READ_RECORDS, 3, names.complete, names.version, names.records, version ?? '');
      const [present, texts] = reply as [string?, string[]?];
      if (present === undefined)
        throw new IncompleteViewFault(`Redis has lost ${kind.name}, or the last changes of them, or never had them`);
      return { version: present, records: texts?.map((text) => fromText<R>(text).record) ?? null };
    },
    update: put,
    restore: put,
    held: async () => (await redis.hvals(names.records)).map((text) => fromText<R>(text)),
    exclusive: (work) => runInTurn(redis, names.turn, work),
  };
}

function orderOf<R extends Change>({ record, offset }: Placed<R>) {
  return { revision: record.revision, offset };
}

/** `revision partition offset JSON`, so that a script can order records without parsing them. */
function toText<R extends Change>({ record, partition, offset }: Placed<R>): string {
  return `${record.revision} ${partition} ${offset} ${JSON.stringify(record)}`;
}

function fromText<R>(text: string): Placed<R> {
  const [, partition, offset, json = ''] = /^\d+ (\d+) (\d+) (.*)$/s.exec(text) ?? [];
  return { record: JSON.parse(json) as R, partition: Number(partition), offset: Number(offset) };
}
