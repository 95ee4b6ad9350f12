import type { Random } from '../simulate/random.ts';

/** A contract with assets that are traded. */
export interface Contract {
  readonly kind: 'ERC20' | 'ERC721' | 'ERC1155';
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
}

/** The contracts of a run, the most active first. */
export interface Contracts {
  readonly all: readonly Contract[];
  /** Draws a contract, active ones far more often. @param kinds only of these kinds */
  draw(kinds: readonly Contract['kind'][]): Contract;
}

/** By activity, as on a game's chain: first one collection that everybody trades, its currency, its consumables. */
const KINDS: readonly Contract['kind'][] = [
  ...(['ERC721', 'ERC20', 'ERC1155', 'ERC721', 'ERC721', 'ERC1155'] as const),
  ...(['ERC20', 'ERC721', 'ERC721', 'ERC20', 'ERC1155', 'ERC721'] as const),
  ...(['ERC721', 'ERC20', 'ERC721', 'ERC1155', 'ERC20', 'ERC721'] as const),
];
/** Zipf's law: the second contract gets half of the first one's activities, the tenth a thirteenth. */
const ZIPF_EXPONENT = 1.1;

export function createContracts(random: Random, addressOf: () => string): Contracts {
  const all = KINDS.map((kind): Contract => ({ kind, address: addressOf() }));
  const heatOf = all.map((_, rank) => 1 / (rank + 1) ** ZIPF_EXPONENT);
  const draw = (kinds: readonly Contract['kind'][]) => {
    const ranks = all.flatMap(({ kind }, rank) => (kinds.includes(kind) ? [rank] : []));
    let left = random.next() * ranks.reduce((sum, rank) => sum + heatOf[rank]!, 0);
    for (const rank of ranks) {
      left -= heatOf[rank]!;
      if (left <= 0) return all[rank]!;
    }
    return all[ranks[0]!]!;
  };
  return { all, draw };
}
