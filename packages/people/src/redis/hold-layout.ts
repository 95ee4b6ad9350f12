/** Names of what the holds are made of. `h` is the identity graph's: its script reads it and parks what it names. */
export function createLayout(namespace: string) {
  return {
    /** What the scripts take, in their order; all in one slot. */
    keysOf: (environmentId: string) => [
      // HASH erasure id -> cut-off, time from which it lapses or 0, keys.
      `${namespace}hl:{${environmentId}}`,
      // ZSET, every score 0, so in the order of bytes: identity key ‖ cut-off in six bytes ‖ erasure id.
      `${namespace}hk:{${environmentId}}`,
      // HASH identity key -> latest cut-off in ms, as text.
      `${namespace}h:{${environmentId}}`,
      // Where an earlier release kept its leases (HASH); STRING once they have moved.
      `${namespace}e:{${environmentId}}`,
    ],
    /** ZSET environment ‖ 0x00 ‖ erasure id -> time from which it may lapse. Of every environment, so outside of any slot. */
    lapsing: `${namespace}erasure:lapsing`,
  } as const;
}
export type Layout = ReturnType<typeof createLayout>;
