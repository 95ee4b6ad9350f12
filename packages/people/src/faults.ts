/** Redis has no epoch: it is empty or half rebuilt, and whoever believed it would part everybody and forget every refusal. */
export class MissingEpochFault extends Error {
  override readonly name = 'MissingEpochFault';
  constructor() {
    super('Redis has no epoch of the identities: initialise or rebuild it');
  }
}

/** What may be done only under an erasure's hold, without it: the erasure is done, or its hold has to be placed again. */
export class MissingHoldFault extends Error {
  override readonly name = 'MissingHoldFault';
  constructor() {
    super('the hold of this erasure does not stand');
  }
}

/** Redis is in use: a rebuild needs one without an epoch. */
export class EpochPresentFault extends Error {
  override readonly name = 'EpochPresentFault';
  constructor() {
    super('Redis has an epoch of the identities: only one without is loaded');
  }
}
