import { toUuidText } from '@playline/contracts';
import { askNodes, readRanges } from '../chain/read-ranges.ts';
import type { ShownMint } from './lists.ts';
import type { ShownMints } from './settle.ts';
import type { MintStage } from './stage.ts';

/** A token minted according to the logs of the chain. */
export interface ChainToken {
  readonly activityId: string;
  readonly contract: string;
  readonly transactionHash: string;
  readonly owner: string;
  readonly tokenId: string;
  readonly amount: string;
}

/** A block of the chain, and its time. */
export interface ChainPlace {
  readonly block: number;
  readonly timestampS: number;
}

const NEVER = new AbortController().signal;
/** Selectors of `ownerOf(uint256)` and `balanceOf(address,uint256)`. */
const [OWNER_OF, BALANCE_OF] = ['0x6352211e', '0x00fdd58e'];
const WORD_DIGITS = 64;

/** The latest block. @throws UnreachableError when no node answers */
export async function readHead({ options }: Pick<MintStage, 'options'>): Promise<ChainPlace> {
  const head = await askNodes(options.nodes, (node) => node.block('latest'));
  if (head === null) throw new Error('the chain has no block');
  return { block: head.number, timestampS: head.timestampS };
}

/** All mints to the run's owners after a block, by any sender. */
export async function readChainTokens(stage: MintStage, from: ChainPlace): Promise<readonly ChainToken[]> {
  const { options, assets } = stage;
  const { chain, nodes, contracts } = options;
  const of = new Set<string>([contracts.erc721, contracts.erc1155]);
  const { block: to } = await readHead(stage);
  const tokens: ChainToken[] = [];
  const range = { chain, nodes, from: from.block, to, holds: [], stop: NEVER };
  for await (const { records } of readRanges(range))
    for (const { type, id, contractAddress, blockchainMetadata, details: text } of records) {
      const details = JSON.parse(text) as { to: string; amount: string; asset: { token_id?: string } };
      const contract = `0x${contractAddress?.toString('hex')}`;
      if (type !== 'mint' || !of.has(contract) || !assets.isOwner(details.to)) continue;
      tokens.push({
        activityId: toUuidText(id),
        contract,
        owner: details.to,
        amount: details.amount,
        transactionHash: `0x${blockchainMetadata?.transactionHash.toString('hex')}`,
        tokenId: details.asset.token_id ?? '',
      });
    }
  return tokens;
}

/**
 * Compares chain and interface: each minted request has exactly one log, and each log of the run's owners one request.
 */
export async function judgeChain(stage: MintStage, shown: ShownMints, tokens: readonly ChainToken[]): Promise<void> {
  const { differences } = stage;
  const left = new Map(tokens.map((token) => [token.activityId, token]));
  for (const request of succeededOf(shown)) {
    const { reference_id, activity_id } = request;
    const token = left.get(activity_id ?? '');
    left.delete(activity_id ?? '');
    if (token === undefined)
      differences.add('chain', `${reference_id} is told as minted by ${activity_id}: no such log`);
    else for (const text of describeToken(token, request)) differences.add('chain', `${reference_id} ${text}`);
  }
  for (const { contract, tokenId, owner, transactionHash } of left.values())
    differences.add(
      'uninvited',
      `token ${tokenId} of ${contract} was minted for ${owner} in ${transactionHash}, and no request is told of it`,
    );
  await judgeOwners(stage, shown);
}

export const succeededOf = (shown: ShownMints): readonly ShownMint[] =>
  [...shown.values()].filter(({ status }) => status === 'succeeded');

function describeToken(token: ChainToken, request: ShownMint): readonly string[] {
  const pairs = [
    ['contract', token.contract, request.collection_address],
    ['owner', token.owner, request.owner_address],
    ['token id', token.tokenId, request.token_id],
    ['amount', token.amount, request.amount ?? '1'],
    ['transaction', token.transactionHash, request.transaction_hash],
  ] as const;
  return pairs.flatMap(([name, logged, told]) =>
    logged === told ? [] : [`has ${name} ${logged} on the chain and is shown with ${told}`],
  );
}

const toWord = (value: bigint) => value.toString(16).padStart(WORD_DIGITS, '0');

interface Holding {
  readonly name: string;
  readonly call: { readonly to: string; readonly data: string };
  readonly expected: bigint;
}

/** Asks the contracts for the owners, as a check that does not depend on logs. */
async function judgeOwners(stage: MintStage, shown: ShownMints): Promise<void> {
  const { options, differences } = stage;
  const holdings = listHoldings(stage, shown);
  if (holdings.length === 0) return;
  const calls = holdings.map(({ call }) => call);
  const answers = (await askNodes(options.nodes, (node) => node.calls(calls))) ?? [];
  for (const [at, { name, expected }] of holdings.entries()) {
    const answer = answers[at] ?? null;
    const found = typeof answer !== 'string' || answer === '0x' ? null : BigInt(answer);
    if (found !== expected)
      differences.add('chain', `${name}: the contract says ${found?.toString(16)} and not ${expected.toString(16)}`);
  }
}

function listHoldings({ options }: MintStage, shown: ShownMints): readonly Holding[] {
  const { erc721, erc1155 } = options.contracts;
  const succeeded = succeededOf(shown).filter(({ token_id }) => token_id !== null);
  const single = succeeded.filter(({ collection_address }) => collection_address === erc721);
  const many = succeeded.filter(({ collection_address }) => collection_address === erc1155);
  const owners = single.map(({ reference_id, token_id, owner_address }) => ({
    name: `the owner of ${reference_id}`,
    call: { to: erc721, data: `${OWNER_OF}${toWord(BigInt(token_id!))}` },
    expected: BigInt(owner_address),
  }));
  const sums = [...Map.groupBy(many, ({ owner_address, token_id }) => `${owner_address} ${token_id}`)];
  const balances = sums.map(([name, requests]) => {
    const { owner_address, token_id } = requests[0]!;
    return {
      name: `the balance of ${name}`,
      call: { to: erc1155, data: `${BALANCE_OF}${toWord(BigInt(owner_address))}${toWord(BigInt(token_id!))}` },
      expected: requests.reduce((sum, { amount }) => sum + BigInt(amount ?? '1'), 0n),
    };
  });
  return [...owners, ...balances];
}
