import { PublicError } from '@playline/errors';

export interface Reservation {
  /** @throws PublicError TOO_MANY_REQUESTS_ERROR if there is no memory left */
  grow(bytes: number): void;
  /** Sets the reserved bytes to the bytes already in memory, even above the limit. */
  resize(bytes: number): void;
  /** Releases all bytes. Idempotent. */
  release(): void;
  /** Called after the bytes were released for other owners. Null unless the body is being received. */
  onEvicted: ((fault: PublicError) => void) | null;
}

export interface BytesInFlight {
  readonly used: number;
  /**
   * Admits a request. Only received bytes count. Owners that compete for memory get equal quotas: an owner above its
   * quota is rejected, and its incomplete bodies are evicted, oldest first. An owner's only request is always within
   * its quota.
   * @param owner identifies the owner, such as the key's project
   * @throws PublicError TOO_MANY_REQUESTS_ERROR if there is no memory left or the owner has too many requests
   */
  admit(owner: string, expectedBytes: number): Reservation;
}

export function createBytesInFlight(bytesMax: number, now: () => number = () => performance.now()): BytesInFlight {
  return new Quotas(bytesMax, now);
}

/** How long an owner that was rejected although within its quota competes for memory. `Retry-After` is 1 s. */
const WAITING_MS = 3000;

/** A quarter of a listener's connections, because each request uses memory in addition to its body. */
const OWNER_REQUESTS_MAX = 1024;

interface Owner {
  readonly name: string;
  used: number;
  /** In order of admission. */
  readonly reservations: Set<ActiveReservation>;
}

class Quotas implements BytesInFlight {
  used = 0;
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #owners = new Map<string, Owner>();
  /** Owners that were rejected although within their quota, with the time until which they compete for memory. */
  readonly #waitingUntil = new Map<string, number>();

  constructor(bytesMax: number, now: () => number) {
    this.#bytesMax = bytesMax;
    this.#now = now;
  }

  admit(name: string, expectedBytes: number): Reservation {
    this.assertCapacity(name, 0, expectedBytes);
    if (this.#waitingUntil.size > 0) this.#waitingUntil.delete(name);
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = { name, used: 0, reservations: new Set() };
      this.#owners.set(name, owner);
    }
    if (owner.reservations.size >= OWNER_REQUESTS_MAX)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: TOO_MANY_OPEN });
    const reservation = new ActiveReservation(this, owner);
    owner.reservations.add(reservation);
    return reservation;
  }

  /** @param reserved how many of the `wanted` bytes the request has already reserved */
  assertCapacity(name: string, reserved: number, wanted: number): void {
    if (this.used === reserved) return;
    const missing = this.used - reserved + wanted - this.#bytesMax;
    if (missing <= 0 && !this.#areOthersWaiting(name)) return;
    const otherBytes = (this.#owners.get(name)?.used ?? 0) - reserved;
    const quota = this.#quotaOf(name);
    if (otherBytes === 0 || otherBytes + wanted <= quota) {
      if (missing <= 0 || this.#evict(name, missing, quota)) return;
      this.#waitingUntil.set(name, this.#now() + WAITING_MS);
    }
    throw noMemoryError();
  }

  remove(owner: Owner, reservation: ActiveReservation): void {
    owner.reservations.delete(reservation);
    if (owner.reservations.size === 0) this.#owners.delete(owner.name);
  }

  #areOthersWaiting(name: string): boolean {
    if (this.#waitingUntil.size === 0) return false;
    const now = this.#now();
    for (const [other, until] of this.#waitingUntil) if (until <= now) this.#waitingUntil.delete(other);
    return this.#waitingUntil.size > (this.#waitingUntil.has(name) ? 1 : 0);
  }

  #quotaOf(name: string): number {
    const names = new Set([name, ...this.#owners.keys(), ...this.#waitingUntil.keys()]);
    return this.#bytesMax / names.size;
  }

  /** Evicts incomplete bodies from owners above the quota. Returns false if this would not free enough bytes. */
  #evict(name: string, bytes: number, quota: number): boolean {
    const evicted: ActiveReservation[] = [];
    let freed = 0;
    for (const owner of this.#owners.values()) {
      let excess = owner.name === name ? 0 : owner.used - quota;
      for (const reservation of owner.reservations) {
        if (excess <= 0 || freed >= bytes) break;
        if (reservation.onEvicted === null || reservation.bytes === 0) continue;
        evicted.push(reservation);
        freed += reservation.bytes;
        excess -= reservation.bytes;
      }
    }
    if (freed < bytes) return false;
    for (const each of evicted) each.evict();
    return true;
  }
}

class ActiveReservation implements Reservation {
  bytes = 0;
  onEvicted: Reservation['onEvicted'] = null;
  readonly #quotas: Quotas;
  readonly #owner: Owner;
  #isReleased = false;

  constructor(quotas: Quotas, owner: Owner) {
    this.#quotas = quotas;
    this.#owner = owner;
  }

  grow(to: number): void {
    if (to <= this.bytes) return;
    this.#quotas.assertCapacity(this.#owner.name, this.bytes, to);
    this.resize(to);
  }

  resize(to: number): void {
    if (this.#isReleased) return;
    this.#quotas.used += to - this.bytes;
    this.#owner.used += to - this.bytes;
    this.bytes = to;
  }

  release(): void {
    if (this.#isReleased) return;
    this.resize(0);
    this.#isReleased = true;
    this.onEvicted = null;
    this.#quotas.remove(this.#owner, this);
  }

  evict(): void {
    const { onEvicted } = this;
    this.release();
    onEvicted?.(noMemoryError());
  }
}

export const NO_MEMORY = 'The service has no memory for the body. Retry after the time in the Retry-After header.';

const TOO_MANY_OPEN = `Your project has ${OWNER_REQUESTS_MAX} requests in progress, which is the maximum. Retry after the time in the Retry-After header.`;

const noMemoryError = () => new PublicError('TOO_MANY_REQUESTS_ERROR', { message: NO_MEMORY });
