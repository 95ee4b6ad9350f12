import {
  type BlockBuilder,
  type BlockName,
  type Outcome,
  type Producer,
  RetryableFault,
  type StreamRecord,
  sendDeadLetters,
} from '@playline/stream';

export interface DeferringOptions {
  /** Receives records that turn out to be unreadable only when their block is written. */
  deadLetters: Pick<Producer, 'send'>;
  /** Counts the outcome of a deferred record, which the stream has counted as taken. */
  countDeferred(kind: Outcome['kind']): void;
}

/** Step named in these dead letters; those of the stream name `transform`. */
const STEP = 'write';

/**
 * Creates a block that also takes records which cannot be read yet, because the registry is slow or the fences are not
 * loaded. `add` must not wait, and the record must not become a dead letter. So it is kept, and read when the block is
 * written, where waiting is allowed. Its offset is committed after that, so no record is skipped.
 */
export function createDeferringBlock(inner: BlockBuilder, options: DeferringOptions): BlockBuilder {
  const deferred: StreamRecord[] = [];
  let deferredBytes = 0;
  return {
    get rows() {
      return inner.rows + deferred.length;
    },
    get bytes() {
      return inner.bytes + deferredBytes;
    },
    add(record): Outcome {
      try {
        return inner.add(record);
      } catch (error) {
        if (!(error instanceof RetryableFault)) throw error;
        deferred.push(record);
        deferredBytes += record.value?.length ?? 0;
        return { kind: 'ok' };
      }
    },
    async write(block: BlockName, signal: AbortSignal) {
      for (let record = deferred[0]; record !== undefined; record = deferred[0]) {
        const outcome = addDeferred(inner, record);
        if (outcome.kind === 'deadLetter') await publishLetter(options.deadLetters, record, outcome.reason);
        options.countDeferred(outcome.kind);
        deferred.shift();
        deferredBytes -= record.value?.length ?? 0;
      }
      await inner.write(block, signal);
    },
    release() {
      inner.release();
    },
  };
}

/** @throws RetryableFault when the record still cannot be read; any other fault is a dead letter */
function addDeferred(inner: BlockBuilder, record: StreamRecord): Outcome {
  try {
    return inner.add(record);
  } catch (error) {
    if (error instanceof RetryableFault) throw error;
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: 'deadLetter', reason };
  }
}

/** Resolves when the dead letter is acknowledged. @throws RetryableFault when it is not */
async function publishLetter(producer: Pick<Producer, 'send'>, record: StreamRecord, reason: string): Promise<void> {
  try {
    await sendDeadLetters(producer, [{ record, reason }], STEP);
  } catch (error) {
    throw new RetryableFault('a dead letter is not acknowledged', { cause: error });
  }
}
