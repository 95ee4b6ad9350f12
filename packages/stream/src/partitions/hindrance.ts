import type { Logger } from '@playline/runtime';
import { retryLogOf } from './retry-log.ts';

/**
 * A coordinator that moves or a broker that starts again needs some seconds: nobody has to know. What takes longer, or what
 * the brokers say no waiting mends (a missing grant), keeps its partition from going on.
 */
const STUMBLE_MS = 10_000;

export interface HindranceOptions {
  readonly at: { readonly topic: string; readonly partition: number };
  readonly logger: Logger | undefined;
}

/** Clients of Kafka say of their faults whether another attempt can help. */
const isFinal = (fault: unknown) => fault instanceof Error && (fault as { retriable?: boolean }).retriable === false;

/** What keeps a partition from going on although it is tried again and again: for readiness, and for whoever looks. */
export class Hindrance {
  readonly #options: HindranceOptions;
  #sentence: string | null = null;

  constructor(options: HindranceOptions) {
    this.#options = options;
  }

  /** In a sentence; null while nothing does. */
  get sentence(): string | null {
    return this.#sentence;
  }

  /** Begins a step. @param doing such as `offset 7 is not committed` */
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

  /** It does not go on until `goOn`. */
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
