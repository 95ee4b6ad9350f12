import { createDeck, type Random } from '@playline/testkit/random';
import type { Run } from '../run.ts';

export type CollectionKind = 'erc721' | 'erc1155';

export type Expected =
  | { readonly kind: 'token' }
  | { readonly kind: 'failure'; readonly message: string }
  /** One of several requests for one token id. One request succeeds; the rest fail with this message. */
  | { readonly kind: 'rival'; readonly message: string };

export interface RequestedAsset {
  readonly referenceId: string;
  readonly collection: CollectionKind;
  readonly owner: string;
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly expected: Expected;
}

export interface LedgerEntry {
  readonly asset: RequestedAsset;
  /** Minimum (according to responses) and maximum number of times that the asset was accepted. */
  readonly attemptsMin: number;
  readonly attemptsMax: number;
}

export type MintLedger = ReturnType<typeof createMintLedger>;

export function createMintLedger() {
  const entries = new Map<string, LedgerEntry>();
  let [accepted, unacknowledged] = [0, 0];
  const record = (asset: RequestedAsset, added: { min: number; max: number }) => {
    const { attemptsMin = 0, attemptsMax = 0 } = entries.get(asset.referenceId) ?? {};
    const attempts = { attemptsMin: attemptsMin + added.min, attemptsMax: attemptsMax + added.max };
    entries.set(asset.referenceId, { asset, ...attempts });
  };
  return {
    /** @param wasRepeated whether an earlier request, without a response, may have been stored and may have failed */
    accept: (assets: readonly RequestedAsset[], wasRepeated = false): void => {
      accepted += assets.length;
      for (const asset of assets) record(asset, { min: 1, max: wasRepeated ? 2 : 1 });
    },
    recordUnacknowledged: (assets: readonly RequestedAsset[]): void => {
      unacknowledged += assets.length;
      for (const asset of assets) record(asset, { min: 0, max: 1 });
    },
    find: (referenceId: string): LedgerEntry | null => entries.get(referenceId) ?? null,
    entries: (): readonly LedgerEntry[] => [...entries.values()],
    get accepted() {
      return accepted;
    },
    get unacknowledged() {
      return unacknowledged;
    },
  };
}

export const isAccepted = ({ attemptsMin }: LedgerEntry): boolean => attemptsMin > 0;

export type DemoContracts = Readonly<Record<CollectionKind | 'erc20', string>>;

export type AssetFactory = ReturnType<typeof createAssetFactory>;

const OWNERS = 6;
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;
/** The lowest token id that the demo contract assigns. */
export const THRESHOLD: bigint = 2n ** 128n;
const STACKS = 5;
const SEQUENCE_BITS = 32n;
const TOKEN: Expected = { kind: 'token' };
const REFERENCE_CHARACTERS_MAX = 256;
const SPECIAL_SUFFIXES = [' ä/ö', '?a=b&c#d', '%2F%', '.', '+ ⚔', `"'\\<b>`];

export const referencePrefix = ({ tag }: Run): string => `sim-${tag}-`;

export const alreadyMintedMessage = (tokenId: string): string => `TokenAlreadyMinted(${tokenId})`;

/** Creates assets with new reference ids, except for corrected assets. */
export function createAssetFactory(run: Run, random: Random, contracts: DemoContracts) {
  const prefix = `0x${run.tag}`;
  const owners = Array.from({ length: OWNERS }, () => `${prefix}${random.hex(40 - run.tag.length)}`);
  let sequence = 0;
  const newReference = () => `${referencePrefix(run)}${++sequence}${random.chance(0.2) ? specialSuffix(random) : ''}`;
  // Starts with the run's tag, so that runs have different token ids.
  const newTokenId = () => String((BigInt(prefix) << SEQUENCE_BITS) + BigInt(++sequence));
  const stackIds = Array.from({ length: STACKS }, newTokenId);
  const drawOwner = () => inRandomCase(random, random.pick(owners));
  const createAsset: CreateAsset = (given) => ({
    referenceId: newReference(),
    owner: drawOwner(),
    tokenId: null,
    amount: null,
    expected: TOKEN,
    metadata: random.chance(0.3) ? createMetadata(random) : null,
    ...given,
  });
  const mintable = (collection: CollectionKind = random.chance(0.3) ? 'erc1155' : 'erc721') => {
    if (collection === 'erc721') {
      const amount = random.chance(0.2) ? '1' : null;
      return createAsset({ collection, tokenId: random.chance(0.5) ? newTokenId() : null, amount });
    }
    const amount = random.chance(0.3) ? null : String(random.integer(1, 5));
    return createAsset({ collection, tokenId: random.pick(stackIds), amount });
  };
  const failing = createDeck(random, listFailing(createAsset, newTokenId, contracts, stackIds[0]!));
  return {
    mintable,
    failing: (): RequestedAsset => failing()(),
    rivals: (): readonly [RequestedAsset, RequestedAsset] => {
      const tokenId = newTokenId();
      const expected = { kind: 'rival', message: alreadyMintedMessage(tokenId) } as const;
      const one = () => createAsset({ collection: 'erc721', tokenId, expected });
      return [one(), one()];
    },
    withTakenTokenId: ({ tokenId }: RequestedAsset): RequestedAsset => {
      if (tokenId === null) throw new Error('the contract assigned the token id');
      return createAsset({
        collection: 'erc721',
        tokenId,
        expected: { kind: 'failure', message: alreadyMintedMessage(tokenId) },
      });
    },
    corrected: ({ referenceId, collection }: RequestedAsset): RequestedAsset => ({
      ...mintable(collection),
      referenceId,
    }),
    newReference,
    isOwner: (address: string): boolean => address.toLowerCase().startsWith(prefix),
  };
}

type CreateAsset = (given: Partial<RequestedAsset> & Pick<RequestedAsset, 'collection'>) => RequestedAsset;

/** @param stackId an ERC-1155 token id */
function listFailing(createAsset: CreateAsset, newTokenId: () => string, contracts: DemoContracts, stackId: string) {
  const failingAsset = (collection: CollectionKind, message: string, given: Partial<RequestedAsset> = {}) =>
    createAsset({ collection, ...given, expected: { kind: 'failure', message } });
  const toReceiver = (owner: string) => ({ owner, tokenId: stackId });
  const invalid721 = `ERC721InvalidReceiver(${ZERO_ADDRESS})`;
  return [
    () => failingAsset('erc721', invalid721, { owner: ZERO_ADDRESS, tokenId: newTokenId() }),
    () => failingAsset('erc721', invalid721, { owner: ZERO_ADDRESS }),
    () =>
      failingAsset('erc721', 'A token in an ERC-721 collection must have an amount of 1.', {
        tokenId: newTokenId(),
        amount: '2',
      }),
    () => {
      const tokenId = String(THRESHOLD + BigInt(newTokenId()));
      return failingAsset('erc721', `TokenIdNotBelowThreshold(${tokenId}, ${THRESHOLD})`, { tokenId });
    },
    () => failingAsset('erc1155', 'A token in an ERC-1155 collection requires a token_id.'),
    () => failingAsset('erc1155', `ERC1155InvalidReceiver(${ZERO_ADDRESS})`, toReceiver(ZERO_ADDRESS)),
    // The owner is a contract that does not accept tokens.
    () => failingAsset('erc1155', `ERC1155InvalidReceiver(${contracts.erc20})`, toReceiver(contracts.erc20)),
  ];
}

function specialSuffix(random: Random): string {
  if (random.chance(0.1)) return '⚔'.repeat(REFERENCE_CHARACTERS_MAX - 'sim-0123456789ab-123456789'.length);
  return random.pick(SPECIAL_SUFFIXES);
}

const inRandomCase = (random: Random, address: string) =>
  random.chance(0.2) ? `0x${address.slice(2).toUpperCase()}` : address;

export function createMetadata(random: Random): Record<string, unknown> {
  const number = random.integer(1, 99);
  return {
    name: `Sword of dawn ${number} “Ü”`,
    description: random.chance(0.5) ? null : 'Cuts paper.',
    image: `https://images.example/${random.hex(8)}.png`,
    external_url: null,
    animation_url: null,
    youtube_url: null,
    attributes: [
      { trait_type: 'Power', value: number, display_type: 'number' },
      { trait_type: 'Cursed', value: random.chance(0.5) },
    ],
  };
}

export function toBody({ referenceId, owner, tokenId, amount, metadata }: RequestedAsset): Record<string, unknown> {
  return {
    reference_id: referenceId,
    owner_address: owner,
    ...(tokenId === null ? {} : { token_id: tokenId }),
    ...(amount === null ? {} : { amount }),
    ...(metadata === null ? {} : { metadata }),
  };
}
