export { toPartition } from '@playline/stores';
export * from './log.ts';
export { toBlockToken } from './partitions/block.ts';
export * from './partitions/dead-letters.ts';
export { fromMark, isSameMark, parseMark } from './partitions/log-mark.ts';
export * from './partitions/offset-decision.ts';
export * from './partitions/store-once.ts';
export { toTraceHeaders, traceSink } from './partitions/trace-sink.ts';
export * from './ports.ts';
