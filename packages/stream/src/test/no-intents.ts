import { type IntentPolicy, NO_NOTE, toMetadata } from '../partitions/intent.ts';

/** Commits only offsets, as most consumers do. The next owner then builds other blocks, and rows are duplicated. */
export const NO_INTENTS: IntentPolicy = { parse: () => NO_NOTE, toText: () => toMetadata(NO_NOTE) };
