import { randomInt } from 'node:crypto';
import type { AskNode, ChainNode, IndexedChain } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { EXIT, type ExitCode, numberOf, type Terminal, UnreachableError, UsageError, type Values } from '../command.ts';
import { createProgress } from '../progress.ts';
import { isClean } from '../simulate/differences.ts';
import { createMinterRole } from '../simulate-mint/minter-role.ts';
import { toJson, toLines } from '../simulate-mint/report.ts';
import { simulateMints } from '../simulate-mint/simulation.ts';
import type { MintSimulationOptions } from '../simulate-mint/stage.ts';
import { readStack } from '../stack-file.ts';

export interface SimulateMintContext {
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Folder whose `.playline/stack.json` contains addresses and keys. */
  readonly folder: string;
  readonly chainApi: Addresses['chainApi'];
  readonly indexedChains: () => readonly IndexedChain[];
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  /** Sends requests to the stack's node, including transactions. */
  readonly createAskNode: (node: { url: string }) => AskNode;
  readonly clickhouse: () => ClickHouseAccount;
  /** Aborted when the user interrupts the command: what was requested is still reconciled. */
  readonly stop: AbortSignal;
}

/** A mistyped number cannot run for a day. A project's quota is 200 a minute after the first 2,000. */
const BOUNDS = { assets: 2_000, minutes: 60, rate: 1_000 };
const MINUTE_MS = 60_000;

/** Plays a game that mints on the chain of the stack, and reports the result. */
export async function runMintSimulation(
  values: Values,
  context: SimulateMintContext,
  terminal: Terminal,
): Promise<ExitCode> {
  const options = toOptions(values, context);
  const say = (line: string) => terminal.progress(line);
  const result = await simulateMints({ ...options, stop: context.stop, onProgress: createProgress(terminal), say });
  if (values.json === true) terminal.result(JSON.stringify(toJson(result)));
  else for (const line of toLines(result)) terminal.result(line);
  return isClean(result) ? EXIT.ok : EXIT.failed;
}

/** @throws UsageError for wrong arguments, before any request */
function toOptions(
  values: Values,
  context: SimulateMintContext,
): Omit<MintSimulationOptions, 'stop' | 'onProgress' | 'say'> {
  return {
    seed: numberOf(values, 'seed', { min: 0, max: 2 ** 31 - 1, fallback: randomInt(2 ** 31) }),
    assetsMax: Math.round(numberOf(values, 'assets', { min: 10, max: BOUNDS.assets, fallback: 120 })),
    rate: numberOf(values, 'rate', { min: 0, max: BOUNDS.rate, fallback: 10 }),
    brokenShare: numberOf(values, 'broken', { min: 0, max: 0.9, fallback: 0.15 }),
    durationMaxMs: MINUTE_MS * numberOf(values, 'minutes', { min: 0.01, max: BOUNDS.minutes, fallback: 5 }),
    settleIdleMaxMs: 1000 * numberOf(values, 'settle-seconds', { min: 1, max: 3600, fallback: 60 }),
    // Last, so that errors in the options are reported before a stack that does not run.
    ...toStack(context),
  };
}

/** The chain of the stack and the demo project's contracts on it, the only ones where roles are granted and revoked. */
function toStack(context: SimulateMintContext) {
  const { chainApi, indexedChains, createNode, createAskNode, folder, headerPrefix } = context;
  const api = chainApi();
  if (api === null)
    throw new UsageError(
      '--mint: plays on the chain of a stack that runs here, and the environment names the stores of another deployment',
    );
  const { chain: demo, keys } = readStack(folder);
  const [chain] = indexedChains();
  const { contracts, signer, rpc } = demo ?? {};
  if (contracts === undefined || signer === undefined || rpc === undefined || chain === undefined || keys === undefined)
    throw new UnreachableError('no stack with a chain runs here: start it (npm run up, without --no-chain)');
  const { erc721, erc1155 } = contracts;
  return {
    url: api.url,
    chain,
    contracts,
    clickhouse: context.clickhouse(),
    nodes: chain.urls.map((url, index) => createNode({ name: `${chain.name}/${index + 1}`, url })),
    role: createMinterRole({ ask: createAskNode({ url: rpc }), signer, contracts: [erc721, erc1155] }),
    keyHeader: `${headerPrefix}-api-key`,
    secretKey: keys.development.secret,
    publishableKey: keys.development.publishable,
  };
}
