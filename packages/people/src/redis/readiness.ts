import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { MissingEpochFault } from '../faults.ts';
import type { IdentityGraph } from '../graph.ts';

/** A script that may write, and writes nothing: refused just when writes are, whatever they are refused for. */
const MAY_WRITE = '#!lua\nreturn 1';
/** Out of memory, out of disk, a replica, a primary that has lost its replicas. */
const REFUSES_WRITES = /^(OOM|MISCONF|READONLY|NOREPLICAS)\b/;
/** Below the second that a probe of readiness gives each question. */
const WRITE_CHECK_MS = 900;

/** What tells whether the graph in this Redis can be worked with, and why not. */
export function createReadiness(
  redis: Redis,
  { readEpoch, onUnusable }: { readEpoch(): Promise<string | null>; onUnusable(fault: Error): void },
): Pick<IdentityGraph, 'ready' | 'takesWrites'> {
  const check = async (): Promise<boolean> => {
    if (redis.status !== 'ready') return false;
    try {
      await redis.eval(MAY_WRITE, 0);
      return true;
    } catch (fault) {
      if (!(fault instanceof Error && fault.name === 'ReplyError')) return false;
      if (!REFUSES_WRITES.test(fault.message)) return true;
      onUnusable(fault);
      return false;
    }
  };
  const takesWrites = () => Promise.race([check(), delay(WRITE_CHECK_MS, false, { ref: false })]);
  return {
    takesWrites,
    ready: async () => {
      if (redis.status !== 'ready') return false;
      const [epoch, isWritable] = await Promise.all([readEpoch(), takesWrites()]);
      if (epoch === null) onUnusable(new MissingEpochFault());
      return epoch !== null && isWritable;
    },
  };
}
