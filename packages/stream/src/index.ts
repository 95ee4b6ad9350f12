export type {
  AtomicPublisher,
  GroupOffsets,
  GroupPartition,
  LogBounds,
  LogReader,
  LogSection,
  PlacedRecord,
} from './log.ts';
export { toPartition } from './murmur2.ts';
export { toBlockToken } from './partitions/block-token.ts';
export {
  type DeadLetter,
  deadLetterTopicOf,
  NOTICE_STEP,
  SETTLED_OFFSET,
  sendDeadLetters,
  toDeadLetter,
} from './partitions/dead-letters.ts';
export { type Finding, toFindingText } from './partitions/log-finding.ts';
export { fromMark, isSameMark, parseMark } from './partitions/log-mark.ts';
export { isAnswer, type OffsetDecision, type ReplacedRange } from './partitions/offset-decision.ts';
export { createStoreCalls, type StoreCalls } from './partitions/store-calls.ts';
export { type StoreFoldingOptions, storeFolding } from './partitions/store-folding.ts';
export {
  createNameNotes,
  type NameNotes,
  type StoreOnceOptions,
  storeOnce,
  type TokenRows,
} from './partitions/store-once.ts';
export * from './ports.ts';
export { sendAll } from './send-all.ts';
export { awaitDecided, isTakenOver, OpenTransactionFault } from './transactions.ts';
