const PRELOAD = new URL('../../services/event-writer/src/test/small-blocks.ts', import.meta.url).href;

/** Allows smaller blocks than a deployment may set, so that a fault can hit at many steps. */
export const SMALL_BLOCKS = { NODE_OPTIONS: `--import=${PRELOAD}` };
