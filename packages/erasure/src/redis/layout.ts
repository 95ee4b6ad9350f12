/** Names of what the holds are made of. `h` is the identity graph's: its script reads it and parks what it names. */
export function createLayout(namespace: string) {
  return {
    /** HASH erasure id -> cut-off, time from which it lapses or 0, keys. */
    leasesOf: (environmentId: string) => `${namespace}e:{${environmentId}}`,
    /** HASH identity key -> latest cut-off in ms, as text: design page "Identity", table "Redis layout". */
    holdsOf: (environmentId: string) => `${namespace}h:{${environmentId}}`,
    /** ZSET environment ‖ 0x00 ‖ erasure id -> time from which it may lapse. Of every environment, so outside of any slot. */
    lapsing: `${namespace}erasure:lapsing`,
  } as const;
}
export type Layout = ReturnType<typeof createLayout>;
