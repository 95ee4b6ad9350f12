/** The promises of a run. Each has its own test, and a finding is a broken promise. */
export const PROMISES = [
  'complete',
  'at the end',
  'in order',
  'below the watermark',
  'stable watermarks',
  'backwards',
  'true content',
  'one row a record',
  'answers',
] as const;
export type Promised = (typeof PROMISES)[number];

/** Further findings of the same promise add nothing. */
const STORED_MAX = 5;

/** Collects broken promises, so that one run reports all of them. */
export class Findings {
  readonly #broken = new Map<Promised, string[]>();
  readonly #startMs = performance.now();

  add(promise: Promised, text: string): void {
    const found = this.#broken.get(promise) ?? [];
    const afterS = ((performance.now() - this.#startMs) / 1_000).toFixed(1);
    if (found.length < STORED_MAX) found.push(`after ${afterS} s: ${text}`);
    this.#broken.set(promise, found);
  }

  of(promise: Promised): readonly string[] {
    return this.#broken.get(promise) ?? [];
  }

  all(): string[] {
    return [...this.#broken].flatMap(([promise, found]) => found.map((text) => `${promise}, ${text}`));
  }
}
