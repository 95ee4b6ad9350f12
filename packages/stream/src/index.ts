export type { AtomicPublisher, LogBounds, LogReader, PlacedRecord } from './log.ts';
export { type DeadLetter, deadLetterTopicOf, sendDeadLetters, toDeadLetter } from './partitions/dead-letters.ts';
export * from './ports.ts';
