import type { BlockLimits, BlockSink, Producer } from '../ports.ts';
import type { IntentPolicy } from './intent.ts';
import type { LogPartition } from './log-partition.ts';
import type { Waits } from './ownership.ts';
import type { Reports } from './partition-worker.ts';

/** What one partition of a block consumer works with. */
export interface BlockPartitionOptions extends Reports {
  log: LogPartition;
  sink: BlockSink;
  limits: BlockLimits;
  deadLetters: Producer;
  /** An intent is trusted for half of it, before the coordinator is asked again. */
  sessionTimeoutMs: number;
  /** Default: `KEEP_INTENTS`. Tests also use a policy without intents, to show that they detect doubled rows. */
  intents?: IntentPolicy;
  /** How long the log keeps records of a topic; null while that is not known. */
  retentionMsOf?: (topic: string) => number | null;
  /** Tests only: shorter waits between attempts, and before a partition that stopped is tried again. */
  waits?: { attempt: Waits; standstill: Waits };
}
