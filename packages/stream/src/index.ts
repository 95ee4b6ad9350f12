export type {
  AtomicPublisher,
  GroupOffsets,
  GroupPartition,
  LogBounds,
  LogReader,
  PlacedRecord,
} from './log.ts';
export {
  type DeadLetter,
  deadLetterTopicOf,
  SETTLED_OFFSET,
  sendDeadLetters,
  toDeadLetter,
} from './partitions/dead-letters.ts';
export { type Finding, toFindingText } from './partitions/log-finding.ts';
export { fromMark, isSameMark, parseMark } from './partitions/log-mark.ts';
export { isAnswer, type OffsetDecision, type ReplacedRange } from './partitions/offset-decision.ts';
export * from './ports.ts';
