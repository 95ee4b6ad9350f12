import type { ChainNode, IndexedChain } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/stores';
import type { Random } from '@playline/testkit/random';
import { createDelivery, openHttpClient, parseJson } from '../delivery.ts';
import { count, createLatency, type Differences } from '../report.ts';
import type { Run, RunOptions } from '../run.ts';
import type { AssetFactory, CollectionKind, DemoContracts, MintLedger } from './assets.ts';
import type { MintRows } from './check-requests.ts';
import type { MinterRole } from './simulation.ts';

export interface ApiCall {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly body?: unknown;
  /** Headers to add or replace; null removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

export interface ApiResponse {
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Null for invalid JSON. */
  readonly json: unknown;
  readonly text: string;
  // True if an earlier attempt without a response may have been accepted.
  readonly mayBeStored: boolean;
}

type MintApi = ReturnType<typeof openMintApi>;

/** Longer than the rate limit's window of five minutes. */
const TOTAL_MAX_MS = 330_000;
const REFUSED = 'status 429';

export const createTally = () => ({
  calls: 0,
  refused: 0,
  waitedMs: 0,
  again: new Map<string, number>(),
  latency: createLatency(),
});

/** Creates an API client that, like a game server, repeats a call only after a 5xx, a 429 or a missing response. */
export function openMintApi(url: string, common: Readonly<Record<string, string>>, onWait: (why: string) => void) {
  const client = openHttpClient(url);
  const tally = createTally();
  return {
    tally,
    close: client.close,
    call: async ({ method = 'GET', path, body, headers = {} }: ApiCall): Promise<ApiResponse> => {
      let refusedAt = Number.NaN;
      const deliver = createDelivery({
        client,
        totalMaxMs: TOTAL_MAX_MS,
        onRetry: (reason) => {
          count(tally.again, reason);
          if (reason === REFUSED) tally.refused++;
          if (reason === REFUSED && Number.isNaN(refusedAt)) refusedAt = performance.now();
          onWait(reason === REFUSED ? 'rate limit reached (429); waiting for Retry-After' : reason);
        },
      });
      const startedAt = performance.now();
      const delivered = await deliver({ method, path, headers: toHeaders(common, headers, body), body: toBytes(body) });
      tally.calls += delivered.attempts;
      if (!Number.isNaN(refusedAt)) tally.waitedMs += performance.now() - refusedAt;
      if (delivered.kind === 'given up')
        return { status: null, headers: {}, json: null, text: delivered.reason, mayBeStored: delivered.mayBeStored };
      if (delivered.attempts === 1) tally.latency.add(performance.now() - startedAt);
      const { status, text, headers: shown } = delivered.response;
      return { status, headers: shown, json: parseJson(text) ?? null, text, mayBeStored: delivered.mayBeStored };
    },
  };
}

function toHeaders(
  common: Readonly<Record<string, string>>,
  extra: NonNullable<ApiCall['headers']>,
  body: unknown,
): Record<string, string> {
  const all = { ...common, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...extra };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null));
}

function toBytes(body: unknown): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

const SHOWN_CHARACTERS_MAX = 300;

export const describeResponse = ({ status, text }: ApiResponse): string =>
  status === null ? `got no response (${text})` : `got ${status}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`;

export interface ShownEnvelope {
  readonly code?: unknown;
  readonly details?: { readonly errors?: readonly { readonly field?: unknown }[]; readonly values?: unknown } | null;
}

const NAMES = {
  mint: [
    'imx-mint-requests-limit',
    'imx-mint-requests-limit-reset',
    'imx-remaining-mint-requests',
    'imx-mint-requests-retry-after',
  ],
  refresh: ['imx-refreshes-limit', 'imx-refresh-limit-reset', 'imx-remaining-refreshes', 'retry-after'],
} as const;

/** Returns an error unless all quota headers are present and the body of a 202 contains the same values. */
export function describeQuota(kind: keyof typeof NAMES, { status, headers, json }: ApiResponse): string | null {
  for (const name of NAMES[kind]) {
    const [header, member] = [headers[name], (json as Record<string, unknown> | null)?.[name.replaceAll('-', '_')]];
    if (typeof header !== 'string' || header === '') return `the header ${name} is missing`;
    if (status === 202 && member !== header) return `${name} is ${header} in the headers and ${member} in the body`;
  }
  const [limit, , remaining] = NAMES[kind].map((name) => Number(headers[name]));
  return remaining! >= 0 && remaining! <= limit! ? null : `${remaining} of ${limit} remain`;
}

/** Returns the remaining refresh quota from a response's headers; null if absent. */
export function remainingRefreshesOf({ headers }: ApiResponse): number | null {
  const text = headers[NAMES.refresh[2]];
  return typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : null;
}

/** Differences that a mint simulation can find. Any difference fails the run. */
export type MintDifferenceKind =
  | 'answer' // a call did not get the expected response
  | 'list' // pages are out of order, or have duplicate or unexpected requests
  | 'missing' // an accepted request is not in the list
  | 'open' // at the end, a request has neither a token nor a failure
  | 'outcome' // a request succeeded or failed unexpectedly, or failed with the wrong error
  | 'member' // a field of a mint request differs from the request
  | 'uninvited' // a listed, stored or minted asset was refused or never requested
  | 'role' // a request ended while the signer had no MINTER_ROLE, or the minter did not report the wait
  | 'chain' // a token is missing on the chain, differs, or was minted twice
  | 'row' // the rows in mint_requests differ from the API
  | 'history' // the activity history differs from the chain
  | 'metadata'; // the stored metadata differs from the metadata that was sent last

type MintDifferences = Differences<MintDifferenceKind>;

export interface MintSimulationOptions extends RunOptions {
  readonly url: string;
  readonly chain: IndexedChain;
  readonly nodes: readonly ChainNode[];
  readonly contracts: DemoContracts;
  readonly role: MinterRole;
  readonly clickhouse: ClickHouseAccount;
  readonly keyHeader: string;
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly assetsMax: number;
  readonly durationMaxMs: number;
  log(line: string): void;
}

export const createCounts = () => ({
  orders: 0,
  conflicts: 0,
  probes: 0,
  lists: 0,
  listed: 0,
  refreshes: 0,
  refreshed: 0,
  /** Assets requested while the role was revoked, and assets that the minter reported as waiting for the role. */
  withoutRole: 0,
  waitedForRole: 0,
  again: 0,
});

export interface MintStage {
  readonly options: MintSimulationOptions;
  readonly run: Run;
  readonly random: Random;
  readonly assets: AssetFactory;
  readonly ledger: MintLedger;
  readonly api: MintApi;
  readonly rows: MintRows;
  readonly differences: MintDifferences;
  readonly counts: ReturnType<typeof createCounts>;
  readonly endAt: number;
}

export const COLLECTIONS: readonly CollectionKind[] = ['erc721', 'erc1155'];

export const pathOf = ({ options }: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `/v1/chains/${options.chain.name}/collections/${options.contracts[collection]}`;

export const mintsOf = (stage: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `${pathOf(stage, collection)}/nfts/mint-requests`;

export const isOver = ({ options, endAt }: MintStage): boolean => options.stop.aborted || performance.now() > endAt;
