export { BODY_FAULT, createScanner, type Scanner } from './batch.ts';
export type { Fault } from './faults.ts';
export { type Judgement, judgeScanned, type Rejected, type RejectionEntry } from './judge.ts';
