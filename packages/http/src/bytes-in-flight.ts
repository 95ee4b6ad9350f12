import { PublicError } from '@playline/errors';

/** The bytes of one request in memory. */
export interface Reservation {
  /** Raises the count to `bytes`. @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no room for it */
  grow(bytes: number): void;
  /** Sets the count to `bytes`, which are in memory already, even beyond the bound. */
  resize(bytes: number): void;
  /** Sets the count to zero; a second call does nothing. */
  release(): void;
  /**
   * Set while the body is received: called, when other owners need the bytes, after they were released. Null at all
   * other times, since what is being worked on stays in memory.
   */
  onEvicted: ((fault: PublicError) => void) | null;
}

/** Bounds the memory of the bodies of one process. */
export interface BytesInFlight {
  readonly held: number;
  /**
   * Admits a request that announces `expectedBytes`. Only bytes that have arrived are counted, so a caller that
   * announces many and sends none takes no room from others.
   *
   * One owner may use everything while no other wants more. While others do, each may have an equal share: an owner
   * beyond its share is refused, and bodies that it is still sending are evicted, the oldest first. One request of an
   * owner is always within its share.
   * @param owner whose share it is, such as the project of the key
   * @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no room, or the owner has as many requests as it may; a
   *   lone request is always admitted
   */
  admit(owner: string, expectedBytes: number): Reservation;
}

export function createBytesInFlight(bytesMax: number, now: () => number = () => performance.now()): BytesInFlight {
  return new Shares(bytesMax, now);
}

/** An owner that was refused within its share counts this long as one that wants room. `Retry-After` is 1 s. */
const WANTS_MS = 3000;

/** Most requests of an owner at a time, a quarter of the connections of a listener: each takes memory beside its body. */
const OWNER_REQUESTS_MAX = 1024;

class Owner {
  readonly name: string;
  held = 0;
  /** In the order of their admission. */
  readonly reservations = new Set<ActiveReservation>();

  constructor(name: string) {
    this.name = name;
  }
}

class Shares implements BytesInFlight {
  held = 0;
  readonly #bytesMax: number;
  readonly #now: () => number;
  /** Owners with reservations. */
  readonly #owners = new Map<string, Owner>();
  /** Owners that were refused within their share, and until when they count. */
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
      owner = new Owner(name);
      this.#owners.set(name, owner);
    }
    if (owner.reservations.size >= OWNER_REQUESTS_MAX)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: TOO_MANY_OPEN });
    const reservation = new ActiveReservation(this, owner);
    owner.reservations.add(reservation);
    return reservation;
  }

  /** @param own bytes that the request has already, of the `wanted` */
  assertCapacity(name: string, own: number, wanted: number): void {
    if (this.held === own) return;
    const missing = this.held - own + wanted - this.#bytesMax;
    if (missing <= 0 && !this.#doOthersWant(name)) return;
    const others = (this.#owners.get(name)?.held ?? 0) - own;
    const share = this.#shareBeside(name);
    if (others === 0 || others + wanted <= share) {
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

  /** Frees the bytes of bodies that owners beyond the share are still sending. @returns false if those are too few */
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
  'There is no memory for the body at the moment. Send the request again after the time in Retry-After.';

const TOO_MANY_OPEN = `The owner of your key or address has as many requests in progress as allowed (${OWNER_REQUESTS_MAX}). Send the request again after the time in Retry-After.`;

const noMemoryError = () => new PublicError('TOO_MANY_REQUESTS_ERROR', { message: NO_MEMORY });
