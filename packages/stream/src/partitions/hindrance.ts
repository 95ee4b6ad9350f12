import type { Logger } from '@playline/runtime';
import { retryLogOf } from './retry-log.ts';

/**
 * When a coordinator changes or a broker restarts, a few seconds pass, which nobody needs to know about. What lasts
 * longer, or what brokers call final (such as a missing grant), is reported as the reason why its partition does not go
 * on.
 */
const STUMBLE_MS = 10_000;

export interface HindranceOptions {
  readonly at: { readonly topic: string; readonly partition: number };
  readonly logger: Logger | undefined;
}

/** Clients of Kafka mark their faults: whether another attempt can help. */
const isFinal = (fault: unknown) => fault instanceof Error && (fault as { retriable?: boolean }).retriable === false;

/** Why a partition does not go on although it keeps trying: for readiness, and for operators. */
export class Hindrance {
  readonly #options: HindranceOptions;
  #sentence: string | null = null;

  constructor(options: HindranceOptions) {
    this.#options = options;
  }

  /** The reason as a sentence; null while there is none. */
  get sentence(): string | null {
    return this.#sentence;
  }

  /**
   * Starts a step.
   * @param doing such as `offset 7 is not committed`
   */
  begin(doing: string): StepTrial {
    const { at, logger } = this.#options;
    const { topic, partition } = at;
    const startMs = performance.now();
    let isTold = false;
    return {
      failed: (error) => {
        retryLogOf(logger)?.tell({ topic, partition, level: 'error', error }, doing);
        if (!isFinal(error) && performance.now() - startMs < STUMBLE_MS) return;
        isTold = true;
        this.stand(doing, error);
      },
      done: () => {
        if (!isTold) return;
        logger?.warn({ topic, partition }, 'what hindered the partition is over');
        this.goOn();
      },
    };
  }

  /** The partition stands until `goOn`. */
  stand(what: string, error: unknown): void {
    const { topic, partition } = this.#options.at;
    const reason = error instanceof Error ? error.message : String(error);
    this.#sentence = `${topic}/${partition}: ${what}: ${reason}`;
  }

  goOn(): void {
    this.#sentence = null;
  }
}

/** One step that is tried until it succeeds. */
export interface StepTrial {
  failed(fault: unknown): void;
  done(): void;
}
