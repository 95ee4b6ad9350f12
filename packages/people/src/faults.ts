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
 * Something that is allowed only under an erasure's hold was tried without it: the erasure is finished, or its hold
 * must be placed again.
 */
export class MissingHoldFault extends Error {
  override readonly name = 'MissingHoldFault';
  constructor() {
    super('the hold of this erasure does not stand');
  }
}

/** Redis is in use, but a rebuild needs one without an epoch. */
export class EpochPresentFault extends Error {
  override readonly name = 'EpochPresentFault';
  constructor() {
    super('Redis has an epoch of the identities: only one without is loaded');
  }
}
