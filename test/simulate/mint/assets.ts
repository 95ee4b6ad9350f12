import { createDeck, type Random } from '@playline/testkit/random';
import type { Run } from '../run.ts';

/** The two collections of the demo project. */
export type CollectionKind = 'erc721' | 'erc1155';

/** The expected result of an asset. */
export type Expected =
  | { readonly kind: 'token' }
  | { readonly kind: 'failure'; readonly message: string }
  /** One of several requests for one unminted token id: one gets it, the others fail with this message. */
  | { readonly kind: 'rival'; readonly message: string };

/** An asset as the run requests it. */
export interface RequestedAsset {
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
  readonly asset: RequestedAsset;
  /** Bounds of how often it was accepted: confirmed by answers, and not excluded by them. */
  readonly attemptsMin: number;
  readonly attemptsMax: number;
}

/** The run's own model of its requests. */
export interface MintBook {
  /** Notes that assets were accepted, for the first time or again. */
  accept(assets: readonly RequestedAsset[]): void;
  /** Notes that it is unknown whether they were accepted. */
  doubt(assets: readonly RequestedAsset[]): void;
  find(referenceId: string): BookEntry | null;
  entries(): readonly BookEntry[];
  readonly accepted: number;
  readonly doubted: number;
}

export function createMintBook(): MintBook {
  const entries = new Map<string, BookEntry>();
  let [accepted, doubted] = [0, 0];
  const note = (asset: RequestedAsset, isKnown: boolean) => {
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

/** Addresses of the demo contracts, in lower case. */
export type DemoContracts = Readonly<Record<CollectionKind | 'erc20', string>>;

/** Makes the assets of a run. Each has its own reference id unless stated otherwise. */
export interface AssetMaker {
  /** An asset that can be minted. */
  good(collection?: CollectionKind): RequestedAsset;
  /** An asset that can never be minted. */
  bad(): RequestedAsset;
  /** Two assets with the same ERC-721 token id. */
  rivals(): readonly [RequestedAsset, RequestedAsset];
  /** An asset with the token id of a minted one. */
  taken(minted: RequestedAsset): RequestedAsset;
  /** A good asset with the reference id of a failed one. */
  corrected(failed: RequestedAsset): RequestedAsset;
  /** A reference id without any request. */
  newReference(): string;
  /** Whether an address owns assets of this run only. */
  isOwner(address: string): boolean;
}

const OWNERS = 6;
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;
/** From this id on the demo contract assigns ids itself. */
export const THRESHOLD: bigint = 2n ** 128n;
/** Number of ERC-1155 tokens of a run. */
const STACKS = 5;
const SEQUENCE_BITS = 32n;
const TOKEN: Expected = { kind: 'token' };
const REFERENCE_CHARACTERS_MAX = 256;
/** Characters that paths and lists must transport unchanged. */
const ODD_ENDS = [' ä/ö', '?a=b&c#d', '%2F%', '.', '+ ⚔', `"'\\<b>`];

/** Prefix of every reference id of a run. */
export const referencePrefix = ({ tag }: Run): string => `sim-${tag}-`;

export const takenMessage = (tokenId: string): string => `TokenAlreadyMinted(${tokenId})`;

export function createAssetMaker(run: Run, random: Random, contracts: DemoContracts): AssetMaker {
  const prefix = `0x${run.tag}`;
  const owners = Array.from({ length: OWNERS }, () => `${prefix}${random.hex(40 - run.tag.length)}`);
  let sequence = 0;
  const newReference = () => `${referencePrefix(run)}${++sequence}${random.chance(0.2) ? oddEnd(random) : ''}`;
  // Starts with the tag, so that no two runs share a token id.
  const newTokenId = () => String((BigInt(prefix) << SEQUENCE_BITS) + BigInt(++sequence));
  const stackIds = Array.from({ length: STACKS }, newTokenId);
  const drawOwner = () => inAnyCase(random, random.pick(owners));
  const make = (given: Partial<RequestedAsset> & Pick<RequestedAsset, 'collection'>): RequestedAsset => ({
    referenceId: newReference(),
    owner: drawOwner(),
    tokenId: null,
    amount: null,
    expected: TOKEN,
    metadata: random.chance(0.3) ? makeMetadata(random) : null,
    ...given,
  });
  const good: AssetMaker['good'] = (collection = random.chance(0.3) ? 'erc1155' : 'erc721') => {
    if (collection === 'erc721') {
      const amount = random.chance(0.2) ? '1' : null;
      return make({ collection, tokenId: random.chance(0.5) ? newTokenId() : null, amount });
    }
    const amount = random.chance(0.3) ? null : String(random.integer(1, 5));
    return make({ collection, tokenId: random.pick(stackIds), amount });
  };
  const bad = createDeck(random, listBad({ make, newTokenId, contracts, stackIds }));
  return {
    good,
    bad: () => bad()(),
    rivals: () => {
      const tokenId = newTokenId();
      const expected = { kind: 'rival', message: takenMessage(tokenId) } as const;
      const one = () => make({ collection: 'erc721', tokenId, expected });
      return [one(), one()];
    },
    taken: ({ tokenId }) => {
      if (tokenId === null) throw new Error('the contract assigned its token id');
      return make({ collection: 'erc721', tokenId, expected: { kind: 'failure', message: takenMessage(tokenId) } });
    },
    corrected: ({ referenceId, collection }) => ({ ...good(collection), referenceId }),
    newReference,
    isOwner: (address) => address.toLowerCase().startsWith(prefix),
  };
}

interface BadParts {
  readonly make: (given: Partial<RequestedAsset> & Pick<RequestedAsset, 'collection'>) => RequestedAsset;
  readonly newTokenId: () => string;
  readonly contracts: DemoContracts;
  readonly stackIds: readonly string[];
}

/** Every kind of well-formed asset that cannot be minted. */
function listBad({ make, newTokenId, contracts, stackIds }: BadParts): readonly (() => RequestedAsset)[] {
  const failing = (message: string) => ({ expected: { kind: 'failure', message } as const });
  const tokenId = stackIds[0]!;
  return [
    () =>
      make({
        collection: 'erc721',
        owner: ZERO_ADDRESS,
        tokenId: newTokenId(),
        ...failing(`ERC721InvalidReceiver(${ZERO_ADDRESS})`),
      }),
    () => make({ collection: 'erc721', owner: ZERO_ADDRESS, ...failing(`ERC721InvalidReceiver(${ZERO_ADDRESS})`) }),
    () =>
      make({
        collection: 'erc721',
        tokenId: newTokenId(),
        amount: '2',
        ...failing('A token of an ERC-721 collection has an amount of 1.'),
      }),
    () => {
      const beyond = String(THRESHOLD + BigInt(newTokenId()));
      return make({
        collection: 'erc721',
        tokenId: beyond,
        ...failing(`TokenIdNotBelowThreshold(${beyond}, ${THRESHOLD})`),
      });
    },
    () => make({ collection: 'erc1155', ...failing('A token of an ERC-1155 collection needs a token_id.') }),
    () =>
      make({
        collection: 'erc1155',
        owner: ZERO_ADDRESS,
        tokenId,
        ...failing(`ERC1155InvalidReceiver(${ZERO_ADDRESS})`),
      }),
    // The owner is a contract that does not accept tokens.
    () =>
      make({
        collection: 'erc1155',
        owner: contracts.erc20,
        tokenId,
        ...failing(`ERC1155InvalidReceiver(${contracts.erc20})`),
      }),
  ];
}

function oddEnd(random: Random): string {
  if (random.chance(0.1)) return '⚔'.repeat(REFERENCE_CHARACTERS_MAX - 'sim-0123456789ab-123456789'.length);
  return random.pick(ODD_ENDS);
}

const inAnyCase = (random: Random, address: string) =>
  random.chance(0.2) ? `0x${address.slice(2).toUpperCase()}` : address;

/** Metadata of a token, with every possible member. */
export function makeMetadata(random: Random): Record<string, unknown> {
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

/** An asset as part of a request body. */
export function toBody({ referenceId, owner, tokenId, amount, metadata }: RequestedAsset): Record<string, unknown> {
  return {
    reference_id: referenceId,
    owner_address: owner,
    ...(tokenId === null ? {} : { token_id: tokenId }),
    ...(amount === null ? {} : { amount }),
    ...(metadata === null ? {} : { metadata }),
  };
}
