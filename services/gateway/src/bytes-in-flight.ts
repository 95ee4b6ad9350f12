import { PublicError } from '@playline/errors';

/** Bytes that one request holds. */
export interface Hold {
  /** Raises what is held to `bytes`. @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no room for it */
  grow(bytes: number): void;
  /** Sets what is held to what it really is, room or not. */
  settle(bytes: number): void;
  /** Gives everything back; a second call does nothing. */
  release(): void;
}

/** Bounds the memory of everything received and not yet acknowledged by the brokers. */
export interface BytesInFlight {
  readonly held: number;
  /**
   * Admits a request that says it will bring `expectedBytes`. What it holds are the bytes that came, not those it
   * announced: a caller that announces much and sends nothing takes no room from others.
   * @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no room; a lone request always has room
   */
  admit(expectedBytes: number): Hold;
}

export function createBytesInFlight(bytesMax: number): BytesInFlight {
  let held = 0;
  const checkRoom = (own: number, wanted: number) => {
    const others = held - own;
    if (others > 0 && others + wanted > bytesMax) throw new PublicError('TOO_MANY_REQUESTS_ERROR');
  };
  return {
    get held() {
      return held;
    },
    admit: (expectedBytes) => {
      checkRoom(0, expectedBytes);
      let own = 0;
      let released = false;
      const settle = (to: number) => {
        if (released) return;
        held += to - own;
        own = to;
      };
      return {
        settle,
        grow: (to) => {
          if (to <= own) return;
          checkRoom(own, to);
          settle(to);
        },
        release: () => {
          settle(0);
          released = true;
        },
      };
    },
  };
}
