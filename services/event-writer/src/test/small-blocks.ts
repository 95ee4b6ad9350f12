/**
 * Loaded before a writer's main.ts by tests that need many blocks at once: it reads settings below their minima, which
 * a deployment cannot. Everything else is the writer as it is. Given by its address: `NODE_OPTIONS=--import=…`.
 */
import { registerHooks } from 'node:module';

const MAIN = /\/services\/(event|activity)-writer\/src\/main\.ts$/;
const CONFIG = new URL('./small-blocks-config.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === './config.ts' && MAIN.test(context.parentURL ?? '')
      ? { url: `${CONFIG}?of=${encodeURIComponent(new URL(specifier, context.parentURL).href)}`, shortCircuit: true }
      : next(specifier, context),
});
