import { z } from 'zod';
import { type BridgeEvent, type BridgeSettings, parseBridge } from './logs/bridges.ts';
import { isAddressText, isChainName } from './texts.ts';

/** The chains of Ethereum: the only ones whose logs are known here. */
const CHAIN_ID = /^eip155:[1-9]\d{0,15}$/;
/** A block final so deep on chains that do not say themselves what is final; more is no depth but a mistake. */
const DEPTH_MAX = 100_000;
const RANGE_BLOCKS = 1_000;
const RANGE_BLOCKS_MAX = 100_000;
/** As often as most chains make blocks. */
const POLL_MS = 1_000;

/** One chain that is indexed, as the setting `CHAINS_INDEXED` says it. */
export interface IndexedChain {
  readonly name: string;
  /** `eip155:` and the number that its nodes give. */
  readonly id: string;
  /** Addresses of nodes, which may hold secrets anywhere; the first that answers is asked. */
  readonly rpc: readonly string[];
  /** What is final: as the nodes say, or so many blocks behind the latest. */
  readonly finality: 'finalized' | number;
  /** The first block that is indexed. */
  readonly start: number;
  readonly rangeBlocks: number;
  readonly pollMs: number;
  readonly nativeSymbol: string;
  readonly marketplaces: readonly string[];
  readonly bridges: readonly BridgeEvent[];
  /** Whether its blocks say what logs they have. */
  readonly hasBlooms: boolean;
}

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

const chain = z
  .strictObject({
    name: z.string().refine(isChainName, 'expected lower-case letters, digits and hyphens'),
    id: z.string().regex(CHAIN_ID, 'expected eip155: and a number'),
    rpc: z.array(z.string().refine(isHttp, 'expected http://… or https://…')).min(1),
    finality: z.union([z.literal('finalized'), z.number().int().min(0).max(DEPTH_MAX)]).default('finalized'),
    start: z.number().int().min(0).default(0),
    rangeBlocks: z.number().int().min(1).max(RANGE_BLOCKS_MAX).default(RANGE_BLOCKS),
    pollMs: z.number().int().min(50).max(60_000).default(POLL_MS),
    nativeSymbol: z.string().min(1).default('ETH'),
    marketplaces: z.array(address()).default([]),
    bridges: z.array(bridge).default([]),
    hasBlooms: z.boolean().default(true),
  })
  .transform(({ bridges, ...rest }): IndexedChain => ({ ...rest, bridges: bridges.flat() }));

/** The setting `CHAINS_INDEXED`: JSON, a list of chains; only `name`, `id` and `rpc` are needed. */
export const indexedChains = () =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue('expected JSON');
        return z.NEVER;
      }
    })
    .pipe(z.array(chain))
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'expected each name once')
    .transform((list): readonly IndexedChain[] => list);
