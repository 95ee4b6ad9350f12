export {
  type AtomicPublisher,
  awaitStableBounds,
  type GroupOffsets,
  type GroupPartition,
  isTakenOver,
  type LogBounds,
  type LogReader,
  type LogSection,
  OpenTransactionFault,
  type TransactionRecord,
} from './log.ts';
export { toPartition } from './murmur2.ts';
export { toBlockToken } from './partitions/block.ts';
export {
  type DeadLetter,
  deadLetterTopicOf,
  NOTICE_STEP,
  SETTLED_OFFSET,
  sendDeadLetters,
  toDeadLetter,
} from './partitions/dead-letters.ts';
export { fromMark, isSameMark, parseMark } from './partitions/log-mark.ts';
export {
  type Finding,
  isDecisionFor,
  type OffsetDecision,
  type ReplacedRange,
  toFindingText,
} from './partitions/offset-decision.ts';
export {
  createStoreCalls,
  createTokenNotes,
  type StoreCalls,
  type StoreFoldingOptions,
  type StoreOnceOptions,
  storeFolding,
  storeOnce,
  type TokenNotes,
  type TokenRows,
} from './partitions/store-once.ts';
export * from './ports.ts';
