import type { ErasureHold, HoldName, StandingHold } from '../guards.ts';

/** Times: six bytes reach the year 10,889. */
const NUMBER_BYTES = 6;
const ERASURE_ID_BYTES = 16;

/** Value of a lease, which the scripts unpack too: cut-off, time from which it lapses (0: it stands), keys. */
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

/** Member of the list of what may lapse. An environment id holds no NUL. */
export function toMember({ environmentId, erasureId }: HoldName): Buffer {
  return Buffer.concat([Buffer.from(`${environmentId}\0`), erasureId]);
}

export function fromMember(member: Buffer): HoldName {
  const idAt = member.length - ERASURE_ID_BYTES;
  return { environmentId: member.toString('utf8', 0, idAt - 1), erasureId: member.subarray(idAt) };
}
