/** The two collections of the demo project. */
export type CollectionKind = 'erc721' | 'erc1155';

/** What must come of an asset. */
export type Expected =
  | { readonly kind: 'token' }
  | { readonly kind: 'failure'; readonly words: string }
  /** Several were asked for under one token id before any was minted: one of them gets it, the others fail with these words. */
  | { readonly kind: 'rival'; readonly words: string };

/** An asset as the run asks for it. */
export interface AskedAsset {
  readonly referenceId: string;
  readonly collection: CollectionKind;
  /** As it is sent, in any case. */
  readonly owner: string;
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly expected: Expected;
}

/** What is known of one reference id of the run. */
export interface BookEntry {
  /** As it was asked for last. */
  readonly asset: AskedAsset;
  /** How often it was accepted: as often as answers say, and at most as often as they do not deny. */
  readonly attemptsMin: number;
  readonly attemptsMax: number;
}

/** The run's own model of what it has asked for. */
export interface MintBook {
  /** Notes that assets were accepted, again or for the first time. */
  accept(assets: readonly AskedAsset[]): void;
  /** Notes that nobody knows whether they were accepted. */
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

/** Whether an answer has said that it was accepted at all. */
export const isAccepted = ({ attemptsMin }: BookEntry): boolean => attemptsMin > 0;
