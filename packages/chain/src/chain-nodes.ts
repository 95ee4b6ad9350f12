import { z } from 'zod';
import { type BridgeEvent, type BridgeSettings, parseBridge } from './logs/bridges.ts';
import { isAddressText, isChainName } from './texts.ts';

/** The chains of Ethereum: the only ones whose logs and transactions are known here. */
const CHAIN_ID = /^eip155:([1-9]\d{0,14})$/;
/** More than a month of blocks of any chain: a larger depth is a mistake. */
const DEPTH_MAX = 1_000_000;
/** As often as most chains make blocks. */
const POLL_MS = 1_000;
const RANGE_BLOCKS = 1_000;
/** Ten blocks of the slowest of the chains that people use: so many are never missed in a row while a chain works. */
const STILL_AFTER_S = 120;
const RANGE_BLOCKS_MAX = 100_000;
const GWEI = 1_000_000_000;

/** A chain and its nodes, as whoever talks to them is told. */
export interface NodesOfChain {
  readonly name: string;
  /** `eip155:` and the number that its nodes give. */
  readonly id: string;
  /** That number. */
  readonly chainId: number;
  /** Addresses of nodes by JSON-RPC over HTTP, the preferred one first. They may hold secrets anywhere. */
  readonly urls: readonly string[];
  /** What is final: as the nodes say, or so many blocks behind the latest. */
  readonly finality: 'finalized' | number;
  /** How often its end is looked at, where there is something to look for. */
  readonly pollMs: number;
}

/** What an indexer reads besides. */
export interface IndexedChain extends NodesOfChain {
  /** The first block that is indexed. */
  readonly start: number;
  readonly rangeBlocks: number;
  readonly nativeSymbol: string;
  readonly marketplaces: readonly string[];
  readonly bridges: readonly BridgeEvent[];
  /** Whether its blocks say what logs they have. */
  readonly hasBlooms: boolean;
  /** Seconds without a new block after which it is told to stand still; 0: never, it makes blocks only for transactions. */
  readonly stillAfterS: number;
}

/** What a minter reads besides: what may be spent on a transaction, and when one is looked after. */
export interface MintableChain extends NodesOfChain {
  readonly gasMax: number;
  readonly feeMaxWei: bigint;
  readonly priorityFeeMaxWei: bigint;
  readonly stuckAfterS: number;
  readonly resendEveryS: number;
  /** Transactions that stand in no block. */
  readonly openNoncesMax: number;
  /** Transactions that are not final, in blocks or not. */
  readonly unfinalNoncesMax: number;
  readonly assetsMax: number;
}

/** One chain of the setting `CHAIN_NODES`, with whatever anybody reads of it. */
export interface ChainOfSettings extends IndexedChain, MintableChain {}

const address = () =>
  z
    .string()
    .refine(isAddressText, 'expected 0x and 40 hexadecimal digits')
    .transform((text) => text.toLowerCase());

const bridge = z
  .strictObject({
    contract: address(),
    deposit: z.string().optional(),
    withdrawal: z.string().optional(),
    token: address().optional(),
  })
  .transform((given, context): BridgeEvent[] => {
    try {
      return parseBridge(given as BridgeSettings);
    } catch (fault) {
      context.addIssue({ code: 'custom', message: (fault as Error).message });
      return z.NEVER;
    }
  });

const isHttp = (text: string) => ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? '');

const isFinality = (given: unknown) =>
  given === 'finalized' || (Number.isInteger(given) && Number(given) >= 1 && Number(given) <= DEPTH_MAX);

/** @returns wei */
const gwei = (fallback: number) =>
  z
    .number()
    .positive()
    .max(1_000_000)
    .default(fallback)
    .transform((given) => BigInt(Math.round(given * GWEI)));

const ofNodes = {
  name: z.string().refine(isChainName, 'expected lower-case letters, digits and hyphens'),
  id: z.string().regex(CHAIN_ID, 'expected eip155: and a number'),
  urls: z
    .array(z.string().refine(isHttp, 'expected http://… or https://…'))
    .min(1, 'expected the address of a node at least'),
  finality: z
    .custom<'finalized' | number>(isFinality, `expected "finalized", or a number of blocks from 1 to ${DEPTH_MAX}`)
    .default('finalized'),
  pollMs: z.number().int().min(50).max(60_000).default(POLL_MS),
};

const ofIndexer = {
  start: z.number().int().min(0).default(0),
  rangeBlocks: z.number().int().min(1).max(RANGE_BLOCKS_MAX).default(RANGE_BLOCKS),
  nativeSymbol: z.string().min(1).default('ETH'),
  marketplaces: z.array(address()).default([]),
  bridges: z.array(bridge).default([]),
  hasBlooms: z.boolean().default(true),
  stillAfterS: z.number().int().min(0).max(86_400).default(STILL_AFTER_S),
};

const ofMinter = {
  gasMax: z.number().int().min(21_000).max(1_000_000_000).default(10_000_000),
  feeMaxGwei: gwei(500),
  priorityFeeMaxGwei: gwei(50),
  stuckAfterS: z.number().int().min(1).max(86_400).default(60),
  resendEveryS: z.number().int().min(1).max(3_600).default(15),
  openNoncesMax: z.number().int().min(1).max(64).default(8),
  unfinalNoncesMax: z.number().int().min(1).max(10_000).default(1_000),
  assetsMax: z.number().int().min(1).max(250).default(100),
};

const chain = z.strictObject({ ...ofNodes, ...ofIndexer, ...ofMinter }).transform(
  ({ bridges, feeMaxGwei: feeMaxWei, priorityFeeMaxGwei: priorityFeeMaxWei, ...rest }): ChainOfSettings => ({
    ...{ ...rest, feeMaxWei, priorityFeeMaxWei, bridges: bridges.flat() },
    chainId: Number(CHAIN_ID.exec(rest.id)![1]),
  }),
);

const isEachOnce = (values: readonly string[]) => new Set(values).size === values.length;

/**
 * The setting `CHAIN_NODES`: JSON, a list of chains, of which only `name`, `id` and `urls` are needed. Everybody who is told
 * it reads the same text, and judges all of it. No mistake quotes an address.
 */
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
    .refine((list) => isEachOnce(list.map(({ name }) => name)), 'expected each name once')
    .refine((list) => isEachOnce(list.map(({ id }) => id)), 'expected each id once')
    .transform((list): readonly ChainOfSettings[] => list);
