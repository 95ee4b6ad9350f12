/** Posts generated bodies and compares the accepted messages with the log. */
import { FRAME_BYTES, messageRecordCodec, TOPICS } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import fc from 'fast-check';
import { type Client, MESSAGES_PATH } from '../conformance/client.ts';
import type { ConformanceGateway } from '../conformance/gateway.ts';
import { fuzzBodies } from './bodies.ts';
import { createCheck } from './check.ts';

export interface FuzzOptions {
  gateway: Client & ConformanceGateway;
  brokers: readonly string[];
  /** Seed of the first 20 bodies. Each further 20 bodies use the next seed. */
  seed: number;
  limit: { seeds: number } | { seconds: number };
}

export const FUZZ_SETTINGS: Record<string, string> = {
  RATE_LIMIT_MESSAGES_PER_S: '200000',
  RATE_LIMIT_BURST: '10000000',
  RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000',
  RATE_LIMIT_CONSENTS_PER_S: '200000',
  RATE_LIMIT_CONSENTS_BURST: '10000000',
};

const BODIES_PER_SEED = 20;
const PROBLEMS_MAX = 20;
/** Enough to recognize a body. The seed reproduces the whole body. */
const SHOWN_CHARACTERS = 3000;

// Posts bodies until `limit` is reached. The report lists the first contract violations, accepted messages that are not
// in the log (`missing`) or occur in it more than once (`repeated`), and logged messages that were not accepted
// (`unwanted`).
export async function runFuzz({ gateway, brokers, seed, limit }: FuzzOptions) {
  const check = createCheck((await gateway.request('/openapi.json')).body);
  const problems: { problem: string; seed: number; body: string; response: string }[] = [];
  const byStatus: Record<string, number> = {};
  const [accepted, rejected] = [new Set<string>(), new Set<string>()];
  let requests = 0;
  const startedAt = Date.now();
  const shouldContinue = (next: number) =>
    'seeds' in limit ? next < seed + limit.seeds : Date.now() < startedAt + limit.seconds * 1000;
  let next = seed;
  for (; shouldContinue(next); next++) {
    for (const body of fc.sample(fuzzBodies(startedAt), { numRuns: BODIES_PER_SEED, seed: next })) {
      const response = await post(gateway, body.text);
      const checked = check(body, response);
      for (const id of checked.accepted) accepted.add(id);
      for (const id of checked.rejected) rejected.add(id);
      requests++;
      byStatus[response.status] = (byStatus[response.status] ?? 0) + 1;
      const shown = {
        seed: next,
        body: body.text.slice(0, SHOWN_CHARACTERS),
        response: response.text.slice(0, SHOWN_CHARACTERS),
      };
      for (const problem of checked.problems) if (problems.length < PROBLEMS_MAX) problems.push({ problem, ...shown });
    }
  }
  const logCounts = await countLogged(gateway.topicPrefix, brokers);
  return {
    seeds: [seed, next],
    requests,
    accepted: accepted.size,
    rejected: rejected.size,
    byStatus,
    problems,
    missing: [...accepted].filter((id) => !logCounts.has(id)),
    repeated: [...accepted].filter((id) => (logCounts.get(id) ?? 0) > 1),
    unwanted: [...logCounts.keys()].filter((id) => !accepted.has(id)),
  };
}

async function post(gateway: Client & ConformanceGateway, body: string): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json', 'x-service-publishable-key': gateway.publishableKey };
  const response = await fetch(gateway.base + MESSAGES_PATH, { method: 'POST', headers, body });
  return { status: response.status, text: await response.text() };
}

async function countLogged(topicPrefix: string, brokers: readonly string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const topic = topicPrefix + TOPICS.messages.name;
  for (const { value } of await readTopic({ brokers, topic })) {
    const { messageId } = messageRecordCodec.decode((value as Buffer).subarray(FRAME_BYTES));
    const id = messageId.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
