import type { CallAnswer } from '../ports.ts';

/** An asset that fails alone. */
export interface Refusal<Asset> {
  readonly asset: Asset;
  readonly answer: Exclude<CallAnswer<string>, { readonly kind: 'done' }>;
}

/** The result of simulating a list of assets. */
export interface Selection<Asset> {
  /** These pass together in one transaction. */
  readonly mintable: readonly Asset[];
  /** Each fails alone; has the contract's words if there are any. */
  readonly refused: readonly Refusal<Asset>[];
  /** Pass alone but not with the others: for another transaction. */
  readonly later: readonly Asset[];
}

/**
 * Finds by halving which assets can be minted together. One bad asset among a hundred costs some fifteen calls and
 * fails alone.
 * @param simulate calls the contract with a list as one transaction would
 */
export async function selectMintable<Asset>(
  assets: readonly Asset[],
  simulate: (assets: readonly Asset[]) => Promise<CallAnswer<string>>,
): Promise<Selection<Asset>> {
  const mintable: Asset[] = [];
  const refused: Refusal<Asset>[] = [];
  const later: Asset[] = [];
  const judge = async (part: readonly Asset[]): Promise<void> => {
    if (part.length === 0) return;
    const answer = await simulate([...mintable, ...part]);
    if (answer.kind === 'done') {
      for (const each of part) mintable.push(each);
      return;
    }
    if (part.length > 1) {
      const half = Math.ceil(part.length / 2);
      await judge(part.slice(0, half));
      return judge(part.slice(half));
    }
    const alone = mintable.length === 0 ? answer : await simulate(part);
    if (alone.kind === 'done') later.push(part[0]!);
    else refused.push({ asset: part[0]!, answer: alone });
  };
  await judge(assets);
  return { mintable, refused, later };
}
