import { isChainName } from '@playline/chain';
import { kafkaSettings, redisSettings, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Only chains of this namespace have what transactions need: a number. */
const CHAIN_ID = /^eip155:[1-9]\d{0,15}$/;
/** More than a month of blocks of any chain. */
const DEPTH_MAX = 1_000_000;
const GWEI = 1_000_000_000;

const gwei = (fallback: number) =>
  z
    .number()
    .positive()
    .max(1_000_000)
    .default(fallback)
    .transform((given) => BigInt(Math.round(given * GWEI)));

/** A chain that is minted on, and what may be spent on one transaction there. */
const chainNode = z
  .strictObject({
    name: z.string().refine(isChainName, 'expected lower-case letters, digits and hyphens'),
    id: z.string().regex(CHAIN_ID, 'expected eip155:number'),
    /** Of nodes, by JSON-RPC over HTTP, the preferred one first. There may be a secret in each. */
    urls: z.array(z.url({ protocol: /^https?$/, error: 'expected http://… or https://…' })).min(1),
    /** Blocks that do not change any more: what the node calls finalized, or those so many blocks behind the head. */
    finality: z.union([z.literal('finalized'), z.number().int().min(1).max(DEPTH_MAX)]).default('finalized'),
    gasMax: z.number().int().min(21_000).max(1_000_000_000).default(10_000_000),
    feeMaxGwei: gwei(500),
    priorityFeeMaxGwei: gwei(50),
    stuckAfterS: z.number().int().min(1).max(86_400).default(60),
    resendEveryS: z.number().int().min(1).max(3_600).default(15),
    pollMs: z.number().int().min(50).max(60_000).default(2_000),
    openNoncesMax: z.number().int().min(1).max(64).default(8),
    assetsMax: z.number().int().min(1).max(250).default(100),
  })
  .transform(({ id, ...given }) => ({ ...given, chainId: Number(id.slice('eip155:'.length)) }));

export type ChainNodeSettings = z.infer<typeof chainNode>;

/** JSON: `[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:8545"]}]` */
const chainNodes = () =>
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
    .pipe(z.array(chainNode))
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'expected each name once');

/** Settings of the minter, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port().default(8086),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  CONSUMER_GROUP: settings.text().default('minter'),
  SESSION_TIMEOUT_MS: settings.integer(1_000, 300_000).default(10_000),
  CHAIN_NODES: chainNodes(),
  /** Private halves that sealed keys are opened with, the newest first. Told to no other process. */
  SIGNER_KEYS: settings.text(),
});

export type Config = z.infer<typeof configSchema>;
