import { ADDRESS_EXPECTED, isChainName, parseAddress } from '@playline/contracts';
import { z } from 'zod';
import { type BridgeEvent, type BridgeSettings, parseBridge } from './logs/bridges.ts';
import type { LegacyToken } from './logs/read-activities.ts';

/** Only chains in the `eip155` namespace are supported. */
const CHAIN_ID = /^eip155:([1-9]\d{0,14})$/;
/** Most chains take more than a month to produce this many blocks. */
const DEPTH_MAX = 1_000_000;
const POLL_MS = 1_000;
const RANGE_BLOCKS = 1_000;
/** Ten block intervals on the slowest common chain. */
const STILL_AFTER_S = 120;
const RANGE_BLOCKS_MAX = 100_000;
const WEI_PER_GWEI = 1_000_000_000;

/** Settings for every process that connects to nodes. */
export interface NodeSettings {
  readonly name: string;
  readonly id: string;
  /** The result of `eth_chainId`. */
  readonly chainId: number;
  /** In order of preference. Any part of a URL may be a secret. */
  readonly urls: readonly string[];
  /** `finalized`: the block that the nodes report as finalized. A number: that many blocks behind the latest block. */
  readonly finality: 'finalized' | number;
  readonly pollMs: number;
}

export interface IndexedChain extends NodeSettings {
  readonly start: number;
  readonly rangeBlocks: number;
  readonly nativeSymbol: string;
  readonly marketplaces: readonly string[];
  readonly bridges: readonly BridgeEvent[];
  readonly legacyTokens: readonly LegacyToken[];
  readonly hasBlooms: boolean;
  /** Seconds without a new block before the chain is reported as stalled. 0: never. */
  readonly stillAfterS: number;
}

export interface MintableChain extends NodeSettings {
  readonly gasMax: number;
  readonly feeMaxWei: bigint;
  readonly priorityFeeMaxWei: bigint;
  readonly stuckAfterS: number;
  readonly resendEveryS: number;
  /** Maximum number of transactions per signer that are not in a block yet. */
  readonly openNoncesMax: number;
  /** Maximum number of transactions per signer that are not final yet. */
  readonly unfinalNoncesMax: number;
  readonly assetsMax: number;
}

export interface ConfiguredChain extends IndexedChain, MintableChain {}

/** CryptoKitties, the best-known legacy token. */
const KNOWN_LEGACY_TOKENS: Readonly<Record<string, readonly LegacyToken[]>> = {
  'eip155:1': [{ contract: '0x06012c8cf97bead5deae237070f9587f8e7a266d', type: 'ERC721' }],
};

const address = () =>
  z
    .string()
    .refine((text) => parseAddress(text) !== null, `expected ${ADDRESS_EXPECTED}`)
    .transform((text) => text.toLowerCase());

const bridge = z
  .strictObject({
    contract: address(),
    deposit: z.string().optional(),
    withdrawal: z.string().optional(),
    token: address().optional(),
  })
  .transform((settings, context): BridgeEvent[] => {
    try {
      return parseBridge(settings as BridgeSettings);
    } catch (fault) {
      context.addIssue({ code: 'custom', message: (fault as Error).message });
      return z.NEVER;
    }
  });

const isHttp = (text: string) => ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? '');

const isFinality = (value: unknown) =>
  value === 'finalized' || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= DEPTH_MAX);

const gwei = (fallback: number) =>
  z
    .number()
    .positive()
    .max(1_000_000)
    .default(fallback)
    .transform((amount) => BigInt(Math.round(amount * WEI_PER_GWEI)));

const nodeMembers = {
  name: z.string().refine(isChainName, 'expected lower-case letters, digits and hyphens'),
  id: z.string().regex(CHAIN_ID, 'expected eip155: and a number'),
  urls: z.array(z.string().refine(isHttp, 'expected http://… or https://…')).min(1, 'expected at least one node URL'),
  finality: z
    .custom<'finalized' | number>(isFinality, `expected "finalized", or a number of blocks from 1 to ${DEPTH_MAX}`)
    .default('finalized'),
  pollMs: z.number().int().min(50).max(60_000).default(POLL_MS),
};

const indexerMembers = {
  start: z.number().int().min(0).default(0),
  rangeBlocks: z.number().int().min(1).max(RANGE_BLOCKS_MAX).default(RANGE_BLOCKS),
  nativeSymbol: z.string().min(1).default('ETH'),
  marketplaces: z.array(address()).default([]),
  bridges: z.array(bridge).default([]),
  legacyTokens: z.array(z.strictObject({ contract: address(), type: z.enum(['ERC20', 'ERC721']) })).default([]),
  hasBlooms: z.boolean().default(true),
  stillAfterS: z.number().int().min(0).max(86_400).default(STILL_AFTER_S),
};

const minterMembers = {
  gasMax: z.number().int().min(21_000).max(1_000_000_000).default(10_000_000),
  feeMaxGwei: gwei(500),
  priorityFeeMaxGwei: gwei(50),
  stuckAfterS: z.number().int().min(1).max(86_400).default(60),
  resendEveryS: z.number().int().min(1).max(3_600).default(15),
  openNoncesMax: z.number().int().min(1).max(64).default(8),
  unfinalNoncesMax: z.number().int().min(1).max(10_000).default(1_000),
  assetsMax: z.number().int().min(1).max(250).default(100),
};

const chain = z.strictObject({ ...nodeMembers, ...indexerMembers, ...minterMembers }).transform(
  ({ bridges, feeMaxGwei: feeMaxWei, priorityFeeMaxGwei: priorityFeeMaxWei, ...rest }): ConfiguredChain => ({
    ...rest,
    feeMaxWei,
    priorityFeeMaxWei,
    bridges: bridges.flat(),
    chainId: Number(CHAIN_ID.exec(rest.id)![1]),
    legacyTokens: [...(KNOWN_LEGACY_TOKENS[rest.id] ?? []), ...rest.legacyTokens],
  }),
);

const areUnique = (values: readonly string[]) => new Set(values).size === values.length;

/** Parses `CHAIN_NODES`. Only `name`, `id` and `urls` are required. Errors never contain a URL. */
export const chainNodes = () =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue('expected JSON: [{"name":…,"id":"eip155:…","urls":["http://…"]}]');
        return z.NEVER;
      }
    })
    .pipe(z.array(chain, 'expected a list of chains, [] for none'))
    .refine((list) => areUnique(list.map(({ name }) => name)), 'expected unique names')
    .refine((list) => areUnique(list.map(({ id }) => id)), 'expected unique ids')
    .transform((list): readonly ConfiguredChain[] => list);
