import { setTimeout as delay } from 'node:timers/promises';
import type { Stores } from '@playline/testkit';
import { createRandom, type Random } from '@playline/testkit/random';
import type { Effects } from '../faults/world/report.ts';
import { type Audit, audit } from './auditor.ts';
import { type BackWalk, walkBack } from './back-walker.ts';
import { checkArrivals, checkAudits, checkBackWalk, checkComplete, checkServed } from './checks.ts';
import { injectFaults } from './faults.ts';
import { type FeedRig, openFeedRig } from './feed-rig.ts';
import { Findings } from './findings.ts';
import { Follower, type ReaderParts, type Walk } from './follower.ts';
import { PageChecks } from './page-checks.ts';
import { createPageClient, drawQuery } from './page-client.ts';
import { openProcesses } from './processes.ts';
import { StartCursors } from './start-cursors.ts';
import { openTraffic, type Traffic } from './traffic.ts';
import { addTimes, checkJournal, readLog } from './truth.ts';

const FOLLOWERS = 3;
const LATE_FOLLOWERS = 3;
/** Number of backward readers. Every second one turns around at the beginning and reads forwards. */
const WALKERS = 2;
const READER_PAUSE_MAX_MS = 120;
const AUDIT_PAUSE_MS = 100;

export interface RunOptions {
  readonly seed: number;
  readonly faults: number;
  readonly onLine: (line: string) => void;
}

export interface FeedRun {
  readonly findings: Findings;
  /** Number of faults by name. 0 if the fault never took effect. */
  readonly effects: Effects;
  /** Counts of all other events. If a count is 0, the run did not test everything. */
  readonly counts: Readonly<Record<string, number>>;
}

interface Recorded {
  readonly followers: Follower[];
  readonly walks: Walk[];
  readonly backWalks: BackWalk[];
  readonly audits: Audit[];
}

/** Runs sources, writers, APIs and readers, and then compares everything that readers received with the log. */
export async function runFeed(stores: Stores, options: RunOptions): Promise<FeedRun> {
  const { seed } = options;
  const rig = await openFeedRig(stores);
  try {
    return await runOn(rig, options);
  } catch (cause) {
    throw new Error(`FAULT_SEED=${seed}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  } finally {
    await rig.close();
  }
}

async function runOn(rig: FeedRig, { seed, faults, onLine }: RunOptions): Promise<FeedRun> {
  const random = createRandom(seed);
  const findings = new Findings();
  const processes = await openProcesses(rig, createRandom(seed + 0.5e9));
  const traffic = openTraffic(rig, seed);
  const pageChecks = new PageChecks(rig.watermarks, findings);
  const state = { isOver: false };
  const parts = (readerRandom: Random): ReaderParts => ({
    random: readerRandom,
    pageChecks,
    watermarks: rig.watermarks,
    findings,
    starts,
    client: createPageClient({ random: readerRandom, apis: () => processes.apis, findings }),
    draw: () => drawQuery(readerRandom, rig.chains, traffic.numbers),
  });
  const starts = new StartCursors();
  const seen: Recorded = { followers: [], walks: [], backWalks: [], audits: [] };
  const reading = Promise.all(
    startReaders({ rig, seen, state, parts: (index) => parts(createRandom(seed * 7_919 + index)) }),
  );
  const effects = await Promise.race([
    injectFaults({ rig, processes, pageChecks, random }, { count: faults, onLine }),
    failureOf(reading),
  ]);
  await traffic.stop();
  await rig.untilCaughtUp();
  state.isOver = true;
  await reading;
  const counts = await check(rig, { findings, traffic, pageChecks, seen });
  await processes.close();
  return { findings, effects, counts };
}

const failureOf = async (work: Promise<unknown>): Promise<never> => {
  await work;
  throw new Error('the readers ended too early');
};

interface Reading {
  readonly rig: FeedRig;
  readonly seen: Recorded;
  readonly state: { readonly isOver: boolean };
  readonly parts: (index: number) => ReaderParts;
}

function startReaders({ rig, seen, state, parts }: Reading): Promise<void>[] {
  const pause = (random: Random) => delay(random.integer(0, READER_PAUSE_MAX_MS));
  const follow = async (index: number, isNewcomer: boolean) => {
    const readerParts = parts(index);
    const follower = new Follower(readerParts);
    seen.followers.push(follower);
    while (!state.isOver) {
      const isEnd = await follower.step();
      if (isEnd && isNewcomer) follower.restart();
      if (isEnd) await pause(readerParts.random);
    }
    await follower.finish();
  };
  const walk = async (index: number) => {
    const readerParts = parts(index);
    for (let isLast = false; !isLast; ) {
      isLast = state.isOver;
      const backWalk = await walkBack(readerParts);
      if (backWalk === null) await pause(readerParts.random);
      else seen.backWalks.push(backWalk);
      if (backWalk !== null && index % 2 === 0) seen.walks.push(await walkForward(readerParts, backWalk));
    }
  };
  const poll = async () => {
    while (!state.isOver) {
      seen.audits.push(...(await audit(rig)));
      await delay(AUDIT_PAUSE_MS);
    }
  };
  const followers = Array.from({ length: FOLLOWERS + LATE_FOLLOWERS }, (_, index) => follow(index, index >= FOLLOWERS));
  const walkers = Array.from({ length: WALKERS }, (_, index) => walk(FOLLOWERS + LATE_FOLLOWERS + index));
  return [...followers, ...walkers, poll()];
}

async function walkForward(parts: ReaderParts, { query, cursor }: BackWalk): Promise<Walk> {
  const follower = new Follower(parts, query);
  follower.startAt(query, cursor);
  await follower.finish();
  return follower.walks.at(-1)!;
}

interface Outcome {
  readonly findings: Findings;
  readonly traffic: Traffic;
  readonly pageChecks: PageChecks;
  readonly seen: Recorded;
}

async function check(rig: FeedRig, { findings, traffic, pageChecks, seen }: Outcome): Promise<FeedRun['counts']> {
  const { journal } = traffic;
  const truth = await readLog(rig);
  checkJournal(truth, journal);
  const versions = await addTimes(rig, truth, findings);
  checkServed(pageChecks.versions, versions, findings);
  const walks = [...seen.followers.flatMap((follower) => follower.walks), ...seen.walks];
  for (const walk of walks) checkArrivals(walk, versions, findings);
  for (const { walks: walksOfFollower } of seen.followers) checkComplete(walksOfFollower.at(-1)!, versions, findings);
  for (const walk of seen.backWalks) checkBackWalk(walk, versions, findings);
  checkAudits(seen.audits, rig.chains, { versions, findings });
  return {
    activities: traffic.numbers,
    versions: truth.accepted.length,
    rejected: truth.refused.size,
    committed: journal.transactions.committed,
    aborted: journal.transactions.aborted,
    pages: pageChecks.pages,
    crashes: seen.followers.reduce((sum, { crashes }) => sum + crashes, 0),
    arrivals: walks.reduce((sum, { arrivals }) => sum + arrivals.length, 0),
    'backward walks': seen.backWalks.length,
    audits: seen.audits.length,
  };
}
