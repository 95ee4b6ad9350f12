import { type IntentPolicy, NO_NOTE, toMetadata } from '../partitions/intent.ts';

/** Commits offsets only, as most consumers do. The next owner then cuts other blocks, and rows are doubled. */
export const NO_INTENTS: IntentPolicy = { parse: () => NO_NOTE, toText: () => toMetadata(NO_NOTE) };
