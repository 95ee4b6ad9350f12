/**
 * Loaded before the writer's main.ts by tests that need many blocks at once: it reads settings below their minima, which
 * a deployment cannot. Everything else is the writer as it is. Given by its address: `NODE_OPTIONS=--import=…`.
 */
import { registerHooks } from 'node:module';

const MAIN = new URL('../main.ts', import.meta.url).href;
const CONFIG = new URL('./small-blocks-config.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === './config.ts' && context.parentURL === MAIN
      ? { url: CONFIG, shortCircuit: true }
      : next(specifier, context),
});
