import { ACCOUNTS } from './accounts/account.ts';
import { COLLECTIONS } from './collections/collection.ts';
import { PROJECTS } from './projects/project.ts';
import { RATE_LIMIT_KEYS } from './rate-limit-keys/rate-limit-key.ts';
import type { Change, RecordKind } from './records/record-log.ts';
import { SIGNABLE_KEYS } from './signable-keys/signable-key.ts';

/**
 * Every kind of records whose truth is a compacted topic with a view in Redis. A new one is one line here: then its view is
 * kept level by gateways and put back by a rebuild.
 */
export const RECORD_KINDS: readonly RecordKind<Change>[] = [
  toAnyKind(RATE_LIMIT_KEYS),
  toAnyKind(PROJECTS),
  toAnyKind(ACCOUNTS),
  toAnyKind(COLLECTIONS),
  toAnyKind(SIGNABLE_KEYS),
];

/** What is done with records of any kind hands them back to the kind that they came from. */
function toAnyKind<R extends Change>(kind: RecordKind<R>): RecordKind<Change> {
  return kind as unknown as RecordKind<Change>;
}
