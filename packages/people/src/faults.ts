/**
 * Redis has no epoch: it is empty, or a rebuild is not finished. Its answers would separate linked people and forget
 * refused consents.
 */
export class MissingEpochFault extends Error {
  override readonly name = 'MissingEpochFault';
  constructor() {
    super('Redis has no epoch of the identities: initialise or rebuild it');
  }
}

/**
 * Redis was restarted or promoted and may lack fences of erased people, or have data of them again. An eraser sets the
 * fences again; until then no link is applied and no consent is read.
 */
export class MissingFencesFault extends Error {
  override readonly name = 'MissingFencesFault';
  constructor() {
    super('Redis was restarted and may lack fences of erased people: an eraser must be running, which sets them again');
  }
}

/**
 * Something that is allowed only under an erasure's hold was tried without it: the erasure is finished, or its hold
 * must be placed again.
 */
export class MissingHoldFault extends Error {
  override readonly name = 'MissingHoldFault';
  constructor() {
    super('the hold of this erasure does not stand');
  }
}

/** Redis was restarted during a rebuild and may have lost a part of what was loaded. */
export class RestartedFault extends Error {
  override readonly name = 'RestartedFault';
  constructor() {
    super('Redis was restarted during the rebuild: empty it (FLUSHDB) and rebuild it again');
  }
}

/** Redis is in use, but a rebuild needs one without an epoch. */
export class EpochPresentFault extends Error {
  override readonly name = 'EpochPresentFault';
  constructor() {
    super('Redis has an epoch of the identities: only one without is loaded');
  }
}
