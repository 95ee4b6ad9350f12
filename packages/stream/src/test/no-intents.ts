import { type IntentPolicy, NO_NOTE, toMetadata } from '../partitions/intent.ts';

/** Keeps offsets alone, as most consumers do: whoever takes over cuts other blocks, and rows double. */
export const NO_INTENTS: IntentPolicy = { parse: () => NO_NOTE, toText: () => toMetadata(NO_NOTE) };
