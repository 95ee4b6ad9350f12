// One of two processes of a chain service fails in a whole cluster while assets are minted, and returns.
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@playline/testkit/random';
import { nodeName } from '../../infra/local/node-names.ts';
import { BROKERS } from './scenarios/leaders.ts';
import { type Cluster, type ClusterTrialsOptions, createTrialsOf, openCluster } from './world/cluster.ts';
import { FAILURES, type Failure, fail } from './world/failure.ts';
import { type FaultTrial, type SeedEnd, toSeconds } from './world/report.ts';

const SERVICES = ['chain-api', 'activity-writer', 'chain-indexer', 'minter'] as const;

export const CLUSTER_MINT_FAULTS = SERVICES.flatMap((service) =>
  (Object.keys(FAILURES) as Failure[]).map((failure) => {
    const what = `${service} ${FAILURES[failure]}`;
    const title = `every reference id has one token or one clear failure when one ${service} of two is ${FAILURES[failure]}`;
    const tried = `a whole cluster with a chain: ${what}`;
    return { fault: 23, brokers: BROKERS, tried, service, failure, ...(failure !== 'cut' && { title }) };
  }),
);

const ASSETS = 120;
/** Assets per second, so that mint requests arrive before, during and after the failure. */
const RATE = 8;
const LEAD_MS = { min: 1_000, max: 4_000 };

/** The members of the simulation's report that a trial uses. */
interface MintReport {
  readonly assets: { readonly accepted: number };
  readonly ended: { readonly succeeded: number; readonly failed: number };
  readonly found: { readonly tokens: number };
  readonly mintedSeconds: { readonly p99: number };
}

type ClusterMintFault = (typeof CLUSTER_MINT_FAULTS)[number];

async function tryFault(cluster: Cluster, { service, failure }: ClusterMintFault, seed: number): Promise<SeedEnd> {
  const random = createRandom(seed);
  await cluster.awaitHealthy();
  const flags = { '--assets': ASSETS, '--rate': RATE, '--seed': seed };
  // Exits with 1 if chain, rows, API and history differ.
  const minting = cluster.simulate('--mint', '--json', ...Object.entries(flags).flat().map(String));
  minting.catch(() => {});
  await delay(random.integer(LEAD_MS.min, LEAD_MS.max));
  const failedAt = performance.now();
  let healthyMs = 0;
  try {
    await fail(cluster, random, { name: nodeName(service, random.integer(1, 2)) }, failure);
    await cluster.awaitHealthy();
    healthyMs = performance.now() - failedAt;
  } finally {
    await Promise.allSettled([minting]);
  }
  const { assets, ended, found, mintedSeconds }: MintReport = JSON.parse(await minting);
  return {
    effects: {
      failures: 1,
      '99 % of assets were minted after s': mintedSeconds.p99,
      'every process served after s': toSeconds(healthyMs),
    },
    sent: ASSETS,
    acknowledged: assets.accepted,
    published: ended.succeeded,
    rows: found.tokens,
  };
}

/** @param options.isChosen selects the `CLUSTER_MINT_FAULTS` to try */
export function createClusterMintTrials({ isChosen, ...options }: ClusterTrialsOptions): FaultTrial[] {
  // Gateways copy rate limit keys to Redis, without which a chain API is not ready.
  const open = () => openCluster({ ...options, services: ['gateway', ...SERVICES], chain: true });
  return createTrialsOf(CLUSTER_MINT_FAULTS.filter(isChosen), { ...options, open, tryFault });
}
