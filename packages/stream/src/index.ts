export type { AtomicPublisher, LogBounds, LogReader, PlacedRecord } from './log.ts';
export {
  type DeadLetter,
  deadLetterTopicOf,
  SETTLED_OFFSET,
  sendDeadLetters,
  toDeadLetter,
} from './partitions/dead-letters.ts';
export { type StoreFoldingOptions, storeFolding } from './partitions/store-folding.ts';
export {
  createNameNotes,
  type NameNotes,
  type StoreOnceOptions,
  storeOnce,
  type TokenRows,
} from './partitions/store-once.ts';
export * from './ports.ts';
