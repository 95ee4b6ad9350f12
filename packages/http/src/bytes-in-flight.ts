import { PublicError } from '@playline/errors';

export interface Reservation {
  /** @throws PublicError TOO_MANY_REQUESTS_ERROR when no memory is left */
  grow(bytes: number): void;
  /** Sets the count to bytes that are already in memory, even beyond the bound. */
  resize(bytes: number): void;
  /** Idempotent. */
  release(): void;
  /** Called when the bytes were released for other owners. Null except while the body is being received. */
  onEvicted: ((fault: PublicError) => void) | null;
}

export interface BytesInFlight {
  readonly held: number;
  /**
   * Admits a request. Only received bytes count. Owners that compete for memory get equal shares: an owner beyond its
   * share is refused, and its bodies that are still arriving are evicted, oldest first. An owner's only request is
   * always within its share.
   * @param owner such as the project of the key
   * @throws PublicError TOO_MANY_REQUESTS_ERROR when no memory is left, or the owner has too many requests
   */
  admit(owner: string, expectedBytes: number): Reservation;
}

export function createBytesInFlight(bytesMax: number, now: () => number = () => performance.now()): BytesInFlight {
  return new Shares(bytesMax, now);
}

/** An owner refused within its share competes for this long; `Retry-After` is 1 s. */
const WANTS_MS = 3000;

/** A quarter of a listener's connections: each request uses memory in addition to its body. */
const OWNER_REQUESTS_MAX = 1024;

interface Owner {
  readonly name: string;
  held: number;
  /** In order of admission. */
  readonly reservations: Set<ActiveReservation>;
}

class Shares implements BytesInFlight {
  held = 0;
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #owners = new Map<string, Owner>();
  /** Owners refused within their share, with the time until which they compete. */
  readonly #wants = new Map<string, number>();

  constructor(bytesMax: number, now: () => number) {
    this.#bytesMax = bytesMax;
    this.#now = now;
  }

  admit(name: string, expectedBytes: number): Reservation {
    this.assertCapacity(name, 0, expectedBytes);
    if (this.#wants.size > 0) this.#wants.delete(name);
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = { name, held: 0, reservations: new Set() };
      this.#owners.set(name, owner);
    }
    if (owner.reservations.size >= OWNER_REQUESTS_MAX)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: TOO_MANY_OPEN });
    const reservation = new ActiveReservation(this, owner);
    owner.reservations.add(reservation);
    return reservation;
  }

  /** @param reserved the part of `wanted` that the request has reserved already */
  assertCapacity(name: string, reserved: number, wanted: number): void {
    if (this.held === reserved) return;
    const missing = this.held - reserved + wanted - this.#bytesMax;
    if (missing <= 0 && !this.#doOthersWant(name)) return;
    const otherBytes = (this.#owners.get(name)?.held ?? 0) - reserved;
    const share = this.#shareBeside(name);
    if (otherBytes === 0 || otherBytes + wanted <= share) {
      if (missing <= 0 || this.#evict(name, missing, share)) return;
      this.#wants.set(name, this.#now() + WANTS_MS);
    }
    throw noMemoryError();
  }

  remove(owner: Owner, reservation: ActiveReservation): void {
    owner.reservations.delete(reservation);
    if (owner.reservations.size === 0) this.#owners.delete(owner.name);
  }

  #doOthersWant(name: string): boolean {
    if (this.#wants.size === 0) return false;
    const now = this.#now();
    for (const [other, until] of this.#wants) if (until <= now) this.#wants.delete(other);
    return this.#wants.size > (this.#wants.has(name) ? 1 : 0);
  }

  #shareBeside(name: string): number {
    const names = new Set([name, ...this.#owners.keys(), ...this.#wants.keys()]);
    return this.#bytesMax / names.size;
  }

  /** Evicts arriving bodies of owners beyond the share. False if they do not free enough bytes. */
  #evict(name: string, bytes: number, share: number): boolean {
    const evicted: ActiveReservation[] = [];
    let freed = 0;
    for (const owner of this.#owners.values()) {
      let excess = owner.name === name ? 0 : owner.held - share;
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
  readonly #shares: Shares;
  readonly #owner: Owner;
  #isReleased = false;

  constructor(shares: Shares, owner: Owner) {
    this.#shares = shares;
    this.#owner = owner;
  }

  grow(to: number): void {
    if (to <= this.bytes) return;
    this.#shares.assertCapacity(this.#owner.name, this.bytes, to);
    this.resize(to);
  }

  resize(to: number): void {
    if (this.#isReleased) return;
    this.#shares.held += to - this.bytes;
    this.#owner.held += to - this.bytes;
    this.bytes = to;
  }

  release(): void {
    if (this.#isReleased) return;
    this.resize(0);
    this.#isReleased = true;
    this.onEvicted = null;
    this.#shares.remove(this.#owner, this);
  }

  evict(): void {
    const { onEvicted } = this;
    this.release();
    onEvicted?.(noMemoryError());
  }
}

export const NO_MEMORY =
  'The service has no memory for the body. Send the request again after the time in Retry-After.';

const TOO_MANY_OPEN = `Your project has ${OWNER_REQUESTS_MAX} requests in progress, the most allowed. Send the request again after the time in Retry-After.`;

const noMemoryError = () => new PublicError('TOO_MANY_REQUESTS_ERROR', { message: NO_MEMORY });
