export { type DeadLetter, sendDeadLetters, toDeadLetter } from './partitions/dead-letters.ts';
export * from './ports.ts';
