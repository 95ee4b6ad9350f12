import { type BlockBuilder, type BlockName, type Outcome, RetryableFault, type StreamRecord } from '@playline/stream';
import type { PublishDeadLetter } from '../steps/publish-dead-letter.ts';

export interface DeferringOptions {
  publishDeadLetter: PublishDeadLetter;
  /** Told what became of a record that was held; the stream counted it as taken. */
  countDeferred(kind: Outcome['kind']): void;
}

/**
 * A block that takes records it cannot read yet. `add` cannot wait, and a record must not become a dead letter because
 * the registry is slow or the fences are loading: it is held, and read when the block is written, where waiting is
 * allowed. Offsets are committed after that, so nothing is passed over.
 */
export function createDeferringBlock(inner: BlockBuilder, options: DeferringOptions): BlockBuilder {
  const held: StreamRecord[] = [];
  let heldBytes = 0;
  return {
    get rows() {
      return inner.rows + held.length;
    },
    get bytes() {
      return inner.bytes + heldBytes;
    },
    add(record): Outcome {
      try {
        return inner.add(record);
      } catch (error) {
        if (!(error instanceof RetryableFault)) throw error;
        held.push(record);
        heldBytes += record.value?.length ?? 0;
        return { kind: 'ok' };
      }
    },
    async write(block: BlockName, signal: AbortSignal) {
      for (let record = held[0]; record !== undefined; record = held[0]) {
        const outcome = addHeld(inner, record);
        if (outcome.kind === 'deadLetter') await publish(options.publishDeadLetter, record, outcome.reason);
        options.countDeferred(outcome.kind);
        held.shift();
        heldBytes -= record.value?.length ?? 0;
      }
      await inner.write(block, signal);
    },
    release() {
      inner.release();
    },
  };
}

/** @throws RetryableFault when the record still cannot be read; any other fault is a dead letter */
function addHeld(inner: BlockBuilder, record: StreamRecord): Outcome {
  try {
    return inner.add(record);
  } catch (error) {
    if (error instanceof RetryableFault) throw error;
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: 'deadLetter', reason };
  }
}

async function publish(publishDeadLetter: PublishDeadLetter, record: StreamRecord, reason: string): Promise<void> {
  try {
    await publishDeadLetter(record, reason);
  } catch (error) {
    throw new RetryableFault('a dead letter is not acknowledged', { cause: error });
  }
}
