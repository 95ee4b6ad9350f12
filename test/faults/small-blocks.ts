const PRELOAD = new URL('../../services/event-writer/src/test/small-blocks.ts', import.meta.url).href;

/** Allows blocks below the production minimum, so that a fault can occur at many steps. */
export const SMALL_BLOCKS = { NODE_OPTIONS: `--import=${PRELOAD}` };
