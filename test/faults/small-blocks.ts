const PRELOAD = new URL('../../services/event-writer/src/test/small-blocks.ts', import.meta.url).href;

/** Lets a writer cut blocks smaller than a deployment may have them: many, so many moments for a cut to fall between. */
export const SMALL_BLOCKS = { NODE_OPTIONS: `--import=${PRELOAD}` };
