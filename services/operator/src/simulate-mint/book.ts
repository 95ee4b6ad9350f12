/** The two collections of the demo project. */
export type CollectionKind = 'erc721' | 'erc1155';

/** The expected result of an asset. */
export type Expected =
  | { readonly kind: 'token' }
  | { readonly kind: 'failure'; readonly words: string }
  /** One of several requests for one unminted token id: one gets it, the others fail with these words. */
  | { readonly kind: 'rival'; readonly words: string };

/** An asset as the run requests it. */
export interface AskedAsset {
  readonly referenceId: string;
  readonly collection: CollectionKind;
  /** As it is sent, in any letter case. */
  readonly owner: string;
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly expected: Expected;
}

/** What is known of one reference id of the run. */
export interface BookEntry {
  /** As last requested. */
  readonly asset: AskedAsset;
  /** Bounds of how often it was accepted: confirmed by answers, and not excluded by them. */
  readonly attemptsMin: number;
  readonly attemptsMax: number;
}

/** The run's own model of its requests. */
export interface MintBook {
  /** Notes that assets were accepted, for the first time or again. */
  accept(assets: readonly AskedAsset[]): void;
  /** Notes that it is unknown whether they were accepted. */
  doubt(assets: readonly AskedAsset[]): void;
  find(referenceId: string): BookEntry | null;
  entries(): readonly BookEntry[];
  readonly accepted: number;
  readonly doubted: number;
}

export function createMintBook(): MintBook {
  const entries = new Map<string, BookEntry>();
  let [accepted, doubted] = [0, 0];
  const note = (asset: AskedAsset, isKnown: boolean) => {
    const { attemptsMin, attemptsMax } = entries.get(asset.referenceId) ?? { attemptsMin: 0, attemptsMax: 0 };
    const { referenceId } = asset;
    entries.set(referenceId, {
      asset,
      attemptsMin: attemptsMin + (isKnown ? 1 : 0),
      attemptsMax: attemptsMax + 1,
    });
  };
  return {
    accept: (assets) => {
      accepted += assets.length;
      for (const asset of assets) note(asset, true);
    },
    doubt: (assets) => {
      doubted += assets.length;
      for (const asset of assets) note(asset, false);
    },
    find: (referenceId) => entries.get(referenceId) ?? null,
    entries: () => [...entries.values()],
    get accepted() {
      return accepted;
    },
    get doubted() {
      return doubted;
    },
  };
}

/** Whether an answer has confirmed an acceptance. */
export const isAccepted = ({ attemptsMin }: BookEntry): boolean => attemptsMin > 0;
