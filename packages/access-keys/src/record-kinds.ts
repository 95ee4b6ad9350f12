import { ACCOUNTS } from './accounts/account.ts';
import { COLLECTIONS } from './collections/collection.ts';
import { ACCESS_KEYS } from './keys/access-key.ts';
import { PROJECTS } from './projects/project.ts';
import { RATE_LIMIT_KEYS } from './rate-limit-keys/rate-limit-key.ts';
import type { Change, RecordKind } from './records/record-log.ts';
import { SIGNABLE_KEYS } from './signable-keys/signable-key.ts';

/** Every kind of record. Gateways keep its view in sync, and a rebuild restores it. */
export const RECORD_KINDS: readonly RecordKind<Change>[] = [
  toAnyKind(ACCESS_KEYS),
  toAnyKind(RATE_LIMIT_KEYS),
  toAnyKind(PROJECTS),
  toAnyKind(ACCOUNTS),
  toAnyKind(COLLECTIONS),
  toAnyKind(SIGNABLE_KEYS),
];

/** Safe, because records are passed only to functions of their own kind. */
function toAnyKind<R extends Change>(kind: RecordKind<R>): RecordKind<Change> {
  return kind as unknown as RecordKind<Change>;
}
