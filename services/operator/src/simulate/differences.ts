/** Kinds of differences that a run can find; each makes the run fail. */
export type DifferenceKind =
  | 'answer' // a batch did not get the expected answer
  | 'probe' // an invalid request did not get the expected answer
  | 'missing' // an accepted message is not in the exact view
  | 'doubled' // an accepted message is in the exact view more than once
  | 'uninvited' // a message that was rejected, or never sent, is stored
  | 'person'; // the store's persons differ from the model's

/** Collects differences: counts all of them, and keeps the first texts of each kind. */
export interface Differences<K extends string = DifferenceKind> {
  add(kind: K, text: string): void;
  readonly total: number;
  byKind(): KindOfDifference<K>[];
}

export interface KindOfDifference<K extends string = DifferenceKind> {
  readonly kind: K;
  readonly count: number;
  readonly first: readonly string[];
}

/** Enough to see a pattern, few enough to read. */
const KEPT_MAX = 20;

export function createDifferences<K extends string = DifferenceKind>(): Differences<K> {
  const kinds = new Map<K, { count: number; first: string[] }>();
  return {
    get total() {
      return [...kinds.values()].reduce((sum, { count }) => sum + count, 0);
    },
    add: (kind, text) => {
      const entry = kinds.get(kind) ?? { count: 0, first: [] };
      entry.count++;
      if (entry.first.length < KEPT_MAX) entry.first.push(text);
      kinds.set(kind, entry);
    },
    byKind: () => [...kinds].map(([kind, entry]) => ({ kind, ...entry })),
  };
}

/** Whether a run found nothing that differs. */
export const isClean = ({ differences }: { readonly differences: readonly KindOfDifference<string>[] }): boolean =>
  differences.length === 0;

/** The end of a report for people. @param clean what holds when nothing differs, as a sentence */
export function toVerdictLines(differences: readonly KindOfDifference<string>[], clean: string): string[] {
  const lines = differences.flatMap(({ kind, count, first }) => [
    `DIFFERENT ${kind}: ${count}`,
    ...first.map((text) => `  ${text}`),
  ]);
  return [...lines, isClean({ differences }) ? clean : 'The run FAILED.'];
}
