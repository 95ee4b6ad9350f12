const PRELOAD = new URL('../../services/event-writer/src/test/small-blocks.ts', import.meta.url).href;

/** Allows a writer smaller blocks than a deployment may set. Many blocks give many moments at which a fault can hit. */
export const SMALL_BLOCKS = { NODE_OPTIONS: `--import=${PRELOAD}` };
