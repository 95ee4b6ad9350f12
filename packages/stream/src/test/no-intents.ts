import { type IntentPolicy, NO_NOTE, toMetadata } from '../partitions/intent.ts';

/** Commits only offsets, like most consumers. The next owner then builds different blocks, which duplicates rows. */
export const NO_INTENTS: IntentPolicy = { parse: () => NO_NOTE, toText: () => toMetadata(NO_NOTE) };
