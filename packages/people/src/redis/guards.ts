import type { Redis } from '@playline/stores/redis';
import type { Cutoff, ErasureGuards, ErasureHold, HoldName, StandingHold } from '../guards.ts';
import { type Layout, NUMBER_BYTES } from './layout.ts';
import { createScript, type ScriptArgument } from './scripts.ts';

/** Far more than can lapse between two sweeps. The next sweep drops the rest. */
const LAPSED_A_SWEEP_MAX = 1_000;

/** Blocks Redis for a few milliseconds. */
const FENCES_A_CALL_MAX = 1_000;

/** Blocks Redis for a few milliseconds: about 35 µs for a person of eight identities. */
const ASKED_A_CALL_MAX = 100;

export function createGuards(redis: Redis, layout: Layout): ErasureGuards {
  const placeHold = createScript(redis, 'placeHold');
  const confirmHold = createScript(redis, 'confirmHold');
  const releaseHold = createScript(redis, 'releaseHold');
  const raiseFences = createScript(redis, 'raiseFences');
  const enforceFences = createScript(redis, 'enforceFences');
  const fenceStatus = createScript(redis, 'fenceStatus');
  const completeFences = createScript(redis, 'completeFences');

  const release = async ({ environmentId, erasureId }: HoldName, lapsedAtMs: number | '') =>
    (await releaseHold(layout.holdKeysOf(environmentId), [erasureId, lapsedAtMs])) === 1;
  return {
    async place(hold) {
      // The list is written first: a hold that is not on it would never expire, but an entry without a hold does no
      // harm.
      if (hold.lapsesAtMs !== null) await redis.zadd(layout.lapsing, hold.lapsesAtMs, toMember(hold));
      await placeHold(layout.holdKeysOf(hold.environmentId), [hold.erasureId, toLease(hold), '']);
    },
    extend: async (hold) =>
      (await placeHold(layout.holdKeysOf(hold.environmentId), [hold.erasureId, toLease(hold), 'extend'])) === 1,
    confirm: async ({ environmentId, erasureId }) =>
      (await confirmHold(layout.holdKeysOf(environmentId), [erasureId])) === 1,
    async list(environmentId) {
      const leases = (await redis.callBuffer('HGETALL', layout.leasesOf(environmentId))) as Buffer[];
      return leases.flatMap((id, at) => (at % 2 === 0 ? [fromLease(id, leases[at + 1]!)] : []));
    },
    release: async (name) => void (await release(name, '')),
    async dropLapsed(nowMs) {
      const { lapsing } = layout;
      let dropped = 0;
      for (const member of await redis.zrangebyscoreBuffer(lapsing, '-inf', nowMs, 'LIMIT', 0, LAPSED_A_SWEEP_MAX)) {
        if (await release(fromMember(member), nowMs)) dropped++;
        await redis.zrem(layout.lapsing, member);
      }
      return dropped;
    },
    heldFrom: createHeldFrom(redis, layout),
    async fence(cutoffs) {
      for (const args of toFenceCalls(layout, cutoffs)) await raiseFences([], args);
    },
    async enforce(cutoffs) {
      let [links, consents] = [0, 0];
      for (const args of toFenceCalls(layout, cutoffs)) {
        const [taken, removed] = (await enforceFences([], args)) as [number, number];
        links += taken;
        consents += removed;
      }
      return { links, consents };
    },
    async fenceStatus() {
      const [run, isComplete] = (await fenceStatus([layout.fencedRun], [])) as [Buffer, number];
      return { run: run.toString(), isComplete: isComplete === 1 };
    },
    completeFences: async (run) => (await completeFences([layout.fencedRun], [run])) === 1,
  };
}

/** Arguments of the calls that set fences. */
function* toFenceCalls(layout: Layout, cutoffs: readonly Cutoff[]): Generator<ScriptArgument[]> {
  for (const [environmentId, own] of Map.groupBy(cutoffs, (cutoff) => cutoff.environmentId))
    for (let at = 0; at < own.length; at += FENCES_A_CALL_MAX) {
      const some = own.slice(at, at + FENCES_A_CALL_MAX).flatMap(({ key, cutoffMs }) => [key, cutoffMs]);
      yield [layout.namespace, environmentId, ...some];
    }
}

function createHeldFrom(redis: Redis, layout: Layout): ErasureGuards['heldFrom'] {
  const ask = createScript(redis, 'heldFrom');
  return async (environmentId, keys) => {
    const persons: string[] = [];
    // Asked once for each person: a hold that ends between two calls must not give identities of one person different
    // answers.
    const earliest = new Map<string, number | null>();
    while (persons.length < keys.length) {
      const some = keys.slice(persons.length, persons.length + ASKED_A_CALL_MAX);
      const reply = (await ask([layout.epoch], [layout.namespace, environmentId, ...some])) as Buffer[];
      for (let at = 0; at < reply.length; at += 2) {
        const [person, cutoff] = [reply[at]!.toString('hex'), reply[at + 1]!.toString()];
        persons.push(person);
        earliest.set(person, earlierOf(earliest.get(person) ?? null, cutoff === '' ? null : Number(cutoff)));
      }
    }
    return persons.map((person) => earliest.get(person)!);
  };
}

function earlierOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

const ERASURE_ID_BYTES = 16;

/** Value of a lease, also parsed by the scripts: cut-off, time from which it lapses (0: never), keys. */
export function toLease({ cutoffMs, lapsesAtMs, keys }: ErasureHold): Buffer {
  const times = Buffer.alloc(2 * NUMBER_BYTES);
  times.writeUIntBE(cutoffMs, 0, NUMBER_BYTES);
  times.writeUIntBE(lapsesAtMs ?? 0, NUMBER_BYTES, NUMBER_BYTES);
  return Buffer.concat([times, ...keys]);
}

export function fromLease(erasureId: Buffer, lease: Buffer): StandingHold {
  const lapses = lease.readUIntBE(NUMBER_BYTES, NUMBER_BYTES);
  return { erasureId, cutoffMs: lease.readUIntBE(0, NUMBER_BYTES), lapsesAtMs: lapses === 0 ? null : lapses };
}

/** Member of the list of leases that may lapse. An environment id contains no NUL. */
export function toMember({ environmentId, erasureId }: HoldName): Buffer {
  return Buffer.concat([Buffer.from(`${environmentId}\0`), erasureId]);
}

export function fromMember(member: Buffer): HoldName {
  const idAt = member.length - ERASURE_ID_BYTES;
  return { environmentId: member.toString('utf8', 0, idAt - 1), erasureId: member.subarray(idAt) };
}
