import { randomBytes } from 'node:crypto';
import type { ErasureRecords, ErasureRequest } from '@playline/erasure';
import { type MemoryErasureRows, openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import type { GraphFact } from '@playline/people';
import { type MemoryPeople, openMemoryPeople } from '@playline/people/memory';
import type { BatchParts } from '../steps/erase-batch.ts';
import type { WaitingLink } from '../steps/waiting-links.ts';

export const T = Date.UTC(2026, 5, 15);
/** Longer than the clock skew. */
export const STEP_MS = 10_000;
export const ENVIRONMENT = 'env';
const SOURCE = { generation: 0, partition: 0 };

interface Link {
  readonly a: Buffer;
  readonly b: Buffer;
  readonly at: number;
}

export const toWaiting = ({ a, b, at }: Link): WaitingLink => {
  return { environmentId: ENVIRONMENT, receivedAtMs: at, keys: [a, b], isUnlink: false };
};

/** Simulates a log of links and a linker that decides them on demand and republishes waiting links. */
function createLinker(people: MemoryPeople, rows: MemoryErasureRows) {
  const log: Link[] = [];
  let next = 0;
  const decide = async (link: Link) => {
    const step = { link: 'alias', aKind: 'custom', bKind: 'anonymous', blocked: false, otherKeys: [] };
    const times = { receivedAt: link.at, eventTime: link.at };
    const steps = [{ ...step, aKey: link.a, bKey: link.b }];
    const fact = { environmentId: ENVIRONMENT, offset: next, ...times, steps } as unknown as GraphFact;
    const [applied] = await people.graph.apply({ ...SOURCE, after: next - 1, through: next, facts: [fact] });
    if (applied?.kind === 'parked') return log.push(link);
    if (applied?.kind !== 'decided') return;
    rows.add('identity_links', {
      environment_id: ENVIRONMENT,
      link_generation: 0,
      link_partition: 0,
      link_offset: next,
      outcome: applied.decisions[0]!.outcome,
      message_id: link.at,
      a_key: link.a,
      b_key: link.b,
      person_key: Buffer.alloc(16),
      event_time: link.at,
      received_at: link.at,
    });
  };
  return {
    log,
    next: () => next,
    async run(linksMax = Number.POSITIVE_INFINITY) {
      for (const end = Math.min(log.length, next + linksMax); next < end; next++) await decide(log[next]!);
    },
  };
}

/** Creates a request as the gateway does, with the members that the graph currently contains. */
function createRequester(people: MemoryPeople, records: ErasureRecords) {
  return async (subject: Buffer, cutoffAt: number, requestedAt = cutoffAt - 2_000): Promise<ErasureRequest> => {
    const isKnown = (await people.graph.rootOf(ENVIRONMENT, subject)) !== null;
    const members = isKnown ? await people.graph.membersOf(ENVIRONMENT, subject) : [];
    const memberKeys = members.map(({ key }) => key).filter((key) => !key.equals(subject));
    const named = { environmentId: ENVIRONMENT, subjectKeys: [subject], memberKeys };
    const request = { erasureId: randomBytes(16), ...named, cutoffAt, requestedAt, traceId: '' };
    const keys = [subject, ...memberKeys];
    await people.guards.putHold({ ...request, keys, cutoffMs: cutoffAt, lapsesAtMs: null });
    await records.addRequests([request]);
    return request;
  };
}

export async function openWorld() {
  let nowMs = T;
  const wallClockMs = () => nowMs;
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(wallClockMs)];
  await people.rebuild.mintEpoch();
  const { log, next, run: runLinker } = createLinker(people, rows);
  const parts: BatchParts = {
    people,
    rows,
    records,
    generation: 0,
    wallClockMs,
    barrier: {
      linksStored: async () => {
        await runLinker();
        return log.slice(next()).map(toWaiting);
      },
      allStored: async () => {
        await runLinker();
        return {};
      },
      linkCommits: async () => new Map([[0, next()]]),
    },
    republishLater: async (batchId) => {
      for (const { offset } of await rows.findLaterLinks(batchId)) log.push(log[offset]!);
    },
    // The linker continues while the eraser waits.
    pause: () => runLinker(),
  };
  const tick = () => {
    nowMs += STEP_MS;
    return nowMs;
  };
  return { people, rows, records, log, runLinker, parts, requestErasure: createRequester(people, records), tick };
}

const NO_KEY = Buffer.alloc(16);
export const toEvent = (key: Buffer, at: number) => {
  const carried = { anonymous_key: key, anonymous_id: '', from_key: NO_KEY, to_key: NO_KEY };
  return { environment_id: ENVIRONMENT, identity_key: key, ...carried, event_time: at, received_at: at };
};

export const createKeys = (count: number) => Array.from({ length: count }, () => randomBytes(16));
export const toHex = (keys: Iterable<Buffer>) => new Set([...keys].map((key) => key.toString('hex')));
