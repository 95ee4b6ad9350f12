import { createDeck, type Random } from '../simulate/random.ts';
import type { Run } from '../simulate/run.ts';
import type { AskedAsset, CollectionKind, Expected } from './book.ts';

/** Addresses of the demo contracts, in lower case. */
export type DemoContracts = Readonly<Record<CollectionKind | 'erc20', string>>;

/** Makes the assets of a run. Each has its own reference id unless stated otherwise. */
export interface AssetMaker {
  /** An asset that can be minted. */
  good(collection?: CollectionKind): AskedAsset;
  /** An asset that can never be minted. */
  bad(): AskedAsset;
  /** Two assets with the same ERC-721 token id. */
  rivals(): readonly [AskedAsset, AskedAsset];
  /** An asset with the token id of a minted one. */
  taken(minted: AskedAsset): AskedAsset;
  /** A good asset with the reference id of a failed one. */
  mended(failed: AskedAsset): AskedAsset;
  /** A reference id without any request. */
  newReference(): string;
  /** Whether an address owns assets of this run only. */
  isOwner(address: string): boolean;
}

const OWNERS = 6;
const NOBODY = `0x${'0'.repeat(40)}`;
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

export const takenWords = (tokenId: string): string => `TokenAlreadyMinted(${tokenId})`;

export function createAssetMaker(run: Run, random: Random, contracts: DemoContracts): AssetMaker {
  const prefix = `0x${run.tag}`;
  const owners = Array.from({ length: OWNERS }, () => `${prefix}${random.hex(40 - run.tag.length)}`);
  let sequence = 0;
  const newReference = () => `${referencePrefix(run)}${++sequence}${random.chance(0.2) ? oddEnd(random) : ''}`;
  // Starts with the tag, so that no two runs share a token id.
  const newTokenId = () => String((BigInt(prefix) << SEQUENCE_BITS) + BigInt(++sequence));
  const stackIds = Array.from({ length: STACKS }, newTokenId);
  const drawOwner = () => inAnyCase(random, random.pick(owners));
  const make = (given: Partial<AskedAsset> & Pick<AskedAsset, 'collection'>): AskedAsset => ({
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
      const expected = { kind: 'rival', words: takenWords(tokenId) } as const;
      const one = () => make({ collection: 'erc721', tokenId, expected });
      return [one(), one()];
    },
    taken: ({ tokenId }) => {
      if (tokenId === null) throw new Error('nobody has chosen its token id');
      return make({ collection: 'erc721', tokenId, expected: { kind: 'failure', words: takenWords(tokenId) } });
    },
    mended: ({ referenceId, collection }) => ({ ...good(collection), referenceId }),
    newReference,
    isOwner: (address) => address.toLowerCase().startsWith(prefix),
  };
}

interface BadParts {
  readonly make: (given: Partial<AskedAsset> & Pick<AskedAsset, 'collection'>) => AskedAsset;
  readonly newTokenId: () => string;
  readonly contracts: DemoContracts;
  readonly stackIds: readonly string[];
}

/** Every kind of well-formed asset that cannot be minted. */
function listBad({ make, newTokenId, contracts, stackIds }: BadParts): readonly (() => AskedAsset)[] {
  const failing = (words: string) => ({ expected: { kind: 'failure', words } as const });
  const tokenId = stackIds[0]!;
  return [
    () =>
      make({
        collection: 'erc721',
        owner: NOBODY,
        tokenId: newTokenId(),
        ...failing(`ERC721InvalidReceiver(${NOBODY})`),
      }),
    () => make({ collection: 'erc721', owner: NOBODY, ...failing(`ERC721InvalidReceiver(${NOBODY})`) }),
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
    () => make({ collection: 'erc1155', owner: NOBODY, tokenId, ...failing(`ERC1155InvalidReceiver(${NOBODY})`) }),
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
export function toBody({ referenceId, owner, tokenId, amount, metadata }: AskedAsset): Record<string, unknown> {
  return {
    reference_id: referenceId,
    owner_address: owner,
    ...(tokenId === null ? {} : { token_id: tokenId }),
    ...(amount === null ? {} : { amount }),
    ...(metadata === null ? {} : { metadata }),
  };
}
