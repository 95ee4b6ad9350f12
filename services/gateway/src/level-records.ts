import {
  type Change,
  COMPARE_EVERY_MS,
  catchUpRecords,
  createRecordLogReader,
  IncompleteViewFault,
  type RecordKind,
  type RecordView,
} from '@playline/access-keys';
import type { Closable } from '@playline/runtime';
import { openCatchUp } from './catch-up.ts';
import type { LevelParts } from './level-stores.ts';

/** An open view of records in Redis. */
export type OpenRecordView<R extends Change> = RecordView<R> & Closable;

export interface LevelRecordsParts<R extends Change> {
  kind: RecordKind<R>;
  view: OpenRecordView<R>;
  level: LevelParts;
}

/**
 * Keeps one kind of records in Redis up to date with its log, for every process that reads them from Redis: after a
 * start of Redis that may have lost some, and after a command that died between log and Redis. Closes the view.
 */
export function openLevelRecords<R extends Change>({ kind, view, level }: LevelRecordsParts<R>): Closable {
  const topic = level.topicPrefix + kind.topic;
  const log = createRecordLogReader({
    kind,
    schemaOf: level.registry.schemaOf,
    bounds: () => level.log.bounds(topic),
    read: (range) => level.log.read({ topic, ...range }),
  });
  const period = () => Math.floor(performance.now() / COMPARE_EVERY_MS);
  let comparedIn = Number.NEGATIVE_INFINITY;
  const catchUp = openCatchUp({
    name: kind.name.replaceAll('-', ' '),
    run: async () => {
      const { run, completeIn } = await view.standing();
      // By periods of the process, so that all kinds are compared in the same look and share their requests.
      const present = period();
      if (completeIn === run && present === comparedIn) return null;
      const records = await catchUpRecords({ view, log });
      comparedIn = present;
      return records;
    },
    isLagging: (fault) => fault instanceof IncompleteViewFault,
    logger: level.logger,
  });
  return {
    close: async () => {
      await catchUp.close();
      await view.close();
    },
  };
}
