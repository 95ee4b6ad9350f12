/** The guarantees that a run checks. Each has its own test. A finding is a violation of a guarantee. */
export const GUARANTEES = [
  'complete',
  'at the end',
  'in order',
  'below the watermark',
  'stable watermarks',
  'backward reads',
  'correct content',
  'one row per record',
  'responses',
] as const;
export type Guarantee = (typeof GUARANTEES)[number];

const STORED_MAX = 5;

export class Findings {
  readonly #violations = new Map<Guarantee, string[]>();
  readonly #startMs = performance.now();

  add(guarantee: Guarantee, text: string): void {
    const found = this.#violations.get(guarantee) ?? [];
    const afterS = ((performance.now() - this.#startMs) / 1_000).toFixed(1);
    if (found.length < STORED_MAX) found.push(`after ${afterS} s: ${text}`);
    this.#violations.set(guarantee, found);
  }

  of(guarantee: Guarantee): readonly string[] {
    return this.#violations.get(guarantee) ?? [];
  }

  all(): string[] {
    return [...this.#violations].flatMap(([guarantee, found]) => found.map((text) => `${guarantee}, ${text}`));
  }
}
