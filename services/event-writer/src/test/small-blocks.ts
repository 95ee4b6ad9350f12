/**
 * Preloaded before a writer's main.ts (`NODE_OPTIONS=--import=…`) by tests that write many blocks quickly. Permits
 * block settings below the minima of a deployment.
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
