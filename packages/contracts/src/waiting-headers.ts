/** Headers that a link fact bears from when it waits for an erasure; they go with its copies. */
export const WAITING_HEADERS = {
  /** Where it stood on the topic of links when it first waited, in decimal digits: facts of a person keep this order. */
  firstOffset: 'first-offset',
  /** Keys of all identities that it names, 16 bytes each: an eraser cannot make them of the ids, and asks whom it is about. */
  identityKeys: 'identity-keys',
  /**
   * Of a record of the parked place that is no fact: offsets of facts in front of it, in its partition, that have gone
   * back to the topic of links, eight bytes each. What is committed stands still while any fact waits in front of them.
   */
  left: 'left',
} as const;
