import { FRAME_BYTES, messageRecordCodec, TOPICS } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import fc from 'fast-check';
import type { Client } from '../conformance/client.ts';
import { MESSAGES_PATH } from '../conformance/client.ts';
import type { ConformanceGateway } from '../conformance/gateway.ts';
import { fuzzBodies } from './bodies.ts';
import { createJudge } from './judge.ts';

export interface FuzzOptions {
  gateway: Client & ConformanceGateway;
  brokers: readonly string[];
  /** Seed of the first twenty bodies. Each twenty have the next seed. */
  seed: number;
  /** Number of seeds, which gives the same bodies each time, or a duration. */
  bound: { seeds: number } | { seconds: number };
}

export interface FuzzReport {
  /** The first seed, and the one after the last. */
  seeds: [number, number];
  requests: number;
  accepted: number;
  rejected: number;
  byStatus: Record<string, number>;
  /** The first few faults. */
  faults: { fault: string; seed: number; body: string; answer: string }[];
  /** Accepted messages that are not on the log or more than once, and rejected messages that are on it. */
  missing: string[];
  repeated: string[];
  unwanted: string[];
}

/** Settings of the gateway under test. Its limits are too high to be reached. */
export const FUZZ_SETTINGS: Record<string, string> = {
  RATE_LIMIT_MESSAGES_PER_S: '200000',
  RATE_LIMIT_BURST: '10000000',
  RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000',
  RATE_LIMIT_CONSENTS_PER_S: '200000',
  RATE_LIMIT_CONSENTS_BURST: '10000000',
};

const BODIES_PER_SEED = 20;
/** More faults add nothing. */
const FAULTS_MAX = 20;
/** Enough of a body to recognise it. Its seed gives the rest. */
const SHOWN_CHARACTERS = 3000;

/** Posts generated bodies until the bound, then compares the accepted messages with the log. */
export async function runFuzz({ gateway, brokers, seed, bound }: FuzzOptions): Promise<FuzzReport> {
  const judge = createJudge((await gateway.request('/openapi.json')).body);
  const report: FuzzReport = {
    seeds: [seed, seed],
    requests: 0,
    accepted: 0,
    rejected: 0,
    byStatus: {},
    faults: [],
    missing: [],
    repeated: [],
    unwanted: [],
  };
  const [accepted, rejected] = [new Set<string>(), new Set<string>()];
  const startedAt = Date.now();
  const goesOn = (next: number) =>
    'seeds' in bound ? next < seed + bound.seeds : Date.now() < startedAt + bound.seconds * 1000;
  for (let next = seed; goesOn(next); next++) {
    report.seeds[1] = next + 1;
    for (const body of fc.sample(fuzzBodies(startedAt), { numRuns: BODIES_PER_SEED, seed: next })) {
      const answer = await post(gateway, body.text);
      const verdict = judge(body, answer);
      for (const id of verdict.accepted) accepted.add(id);
      for (const id of verdict.rejected) rejected.add(id);
      report.requests++;
      report.byStatus[answer.status] = (report.byStatus[answer.status] ?? 0) + 1;
      const shown = {
        seed: next,
        body: body.text.slice(0, SHOWN_CHARACTERS),
        answer: answer.text.slice(0, SHOWN_CHARACTERS),
      };
      for (const fault of verdict.faults)
        if (report.faults.length < FAULTS_MAX) report.faults.push({ fault, ...shown });
    }
  }
  const onLog = await countOnLog(gateway.topicPrefix, brokers);
  return {
    ...report,
    accepted: accepted.size,
    rejected: rejected.size,
    missing: [...accepted].filter((id) => !onLog.has(id)),
    repeated: [...accepted].filter((id) => (onLog.get(id) ?? 0) > 1),
    unwanted: [...onLog.keys()].filter((id) => !accepted.has(id)),
  };
}

async function post(gateway: Client & ConformanceGateway, body: string): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json', 'x-service-publishable-key': gateway.publishableKey };
  const answer = await fetch(gateway.base + MESSAGES_PATH, { method: 'POST', headers, body });
  return { status: answer.status, text: await answer.text() };
}

/** How often each message id occurs on the log. */
async function countOnLog(topicPrefix: string, brokers: readonly string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const topic = topicPrefix + TOPICS.messages.name;
  for (const { value } of await readTopic({ brokers, topic })) {
    const { messageId } = messageRecordCodec.decode((value as Buffer).subarray(FRAME_BYTES));
    const id = messageId.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
