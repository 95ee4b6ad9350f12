export type { AtomicPublisher, LogBounds, LogReader, PlacedRecord } from './log.ts';
export {
  type DeadLetter,
  deadLetterTopicOf,
  SETTLED_OFFSET,
  sendDeadLetters,
  toDeadLetter,
} from './partitions/dead-letters.ts';
export * from './ports.ts';
